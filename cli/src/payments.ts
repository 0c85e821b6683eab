import { randomUUID } from 'node:crypto'
import type {
  CreatePaymentParams,
  ExpectedTerms,
  ListedPayment,
  ListPaymentsParams,
  PaymentPage,
  RedeemPaymentParams,
} from '../../sdk/src/index.ts'
import type { Call } from './call.ts'
import { Failure, usage } from './failure.ts'
import { memberOf, readSecretOrInput } from './files.ts'
import { nodeIdOf } from './nodes/node-id.ts'
import { ago, moment, type Paint, sanitize, sat, sheet, table } from './terminal.ts'

export async function create(call: Call): Promise<void> {
  const [node, amountSat, description] = [call.text('node'), call.number('amount-sat'), call.text('description')]
  if (node === undefined || amountSat === undefined || description === undefined) {
    throw usage('--node, --amount-sat and --description are required.', 'boltyard payments create --help')
  }
  const protocol = call.text('protocol') as CreatePaymentParams['protocol']
  const resource = call.text('resource')
  const idempotencyKey = call.text('idempotency-key') ?? randomUUID()
  const client = await call.client()
  const params = {
    nodeId: await nodeIdOf(call, node),
    amountSat,
    description,
    ...(resource === undefined ? {} : { resource }),
    ...(protocol === undefined ? {} : { protocol }),
  }
  const advice = `The payment may have been created. To get it, or create it if it was not, run the command again with --idempotency-key ${idempotencyKey}.`
  const payment = await call.change(advice, () => client.payments.create(params, { idempotencyKey, signal: call.signal }))
  call.print(payment, () =>
    sheet(
      [
        ['id', payment.id],
        ['price', sat(amountSat)],
        ['protocol', payment.protocol],
        ['challenge', sanitize(payment.challenge)],
      ],
      call.paint,
    ),
  )
}

/** Anyone who sees a credential can use it, so it is never passed as an argument. */
async function presented(call: Call): Promise<{ id: string; credential: string }> {
  const given = await readSecretOrInput(call.text('credential-file') ?? '-', 'the customer’s credential', call.signal)
  const credential = memberOf(given, 'credential')
  const { paymentIdOf } = await import('../../sdk/src/index.ts')
  const id = call.positionals[0] ?? paymentIdOf(credential)
  if (id === undefined)
    throw usage(
      'This is not a credential for a payment of this service: it contains no payment id.',
      'Pass the complete value of the customer’s Authorization header.',
    )
  return { id, credential }
}

export async function validate(call: Call): Promise<void> {
  const client = await call.client()
  const { id, credential } = await presented(call)
  const paid = await client.payments.validate(id, credential, { signal: call.signal })
  call.print(paid, () => sheet([['id', paid.id], ['status', call.paint('green', paid.status)], ...receipt(paid)], call.paint))
}

export async function redeem(call: Call): Promise<void> {
  const client = await call.client()
  const { id, credential } = await presented(call)
  const requestId = call.text('request-id') ?? randomUUID()
  const advice = `The delivery may have been claimed. To get the result, or claim it if it was not, run the command again with --request-id ${requestId}.`
  const holdSeconds = call.number('hold-seconds')
  const expect = await expected(call)
  const params: RedeemPaymentParams = {
    credential,
    requestId,
    ...(call.flag('single-use') ? { singleUse: true } : {}),
    ...(holdSeconds === undefined ? {} : { holdSeconds }),
    ...(Object.keys(expect).length === 0 ? {} : { expect }),
  }
  const redeemed = await call.change(advice, () => client.payments.redeem(id, params, { signal: call.signal }))
  call.print(redeemed, () =>
    sheet(
      [
        ['id', redeemed.id],
        ['status', `${call.paint('green', redeemed.status)}, claimed by this request`],
        ['price', sat(redeemed.amountSat)],
        ['for', sanitize(redeemed.description)],
        ['redeemed', moment(redeemed.redeemedAt)],
        ...(holdSeconds === undefined ? [] : [['request id', sanitize(requestId)] as [string, string]]),
        ...receipt(redeemed),
      ],
      call.paint,
    ),
  )
}

async function expected(call: Call): Promise<ExpectedTerms> {
  const [node, resource, minAmountSat] = [call.text('expect-node'), call.text('expect-resource'), call.number('expect-min-sat')]
  return {
    ...(node === undefined ? {} : { nodeId: await nodeIdOf(call, node) }),
    ...(resource === undefined ? {} : { resource }),
    ...(minAmountSat === undefined ? {} : { minAmountSat }),
  }
}

function holder(call: Call): string {
  const requestId = call.text('request-id')
  if (requestId === undefined)
    throw usage(
      '--request-id is required: only the request that claimed a delivery can confirm or release it.',
      'boltyard payments --help',
    )
  return requestId
}

export async function delivered(call: Call): Promise<void> {
  const name = { id: call.argument(0), requestId: holder(call) }
  const client = await call.client()
  const [delivery] = await client.payments.delivered([name], { signal: call.signal })
  if (delivery?.result !== 'delivered')
    throw new Failure('conflict', 'not_claimed', 'This request id does not hold the delivery of this payment.', {
      next: `boltyard payments get ${name.id}`,
    })
  call.print(delivery, () =>
    sheet(
      [
        ['id', delivery.id],
        ['delivery', call.paint('green', 'done')],
      ],
      call.paint,
    ),
  )
}

export async function release(call: Call): Promise<void> {
  const [id, requestId, reason] = [call.argument(0), holder(call), call.text('reason')]
  const client = await call.client()
  const body = { requestId, ...(reason === undefined ? {} : { reason }) }
  const released = await client.payments.release(id, body, { signal: call.signal })
  call.print(released, () =>
    sheet(
      [
        ['id', released.id],
        ['status', `${call.paint('green', released.status)}, can be redeemed again`],
      ],
      call.paint,
    ),
  )
}

const receipt = (paid: { receipt?: string }): [string, string][] =>
  paid.receipt === undefined ? [] : [['receipt', sanitize(paid.receipt)]]

export async function get(call: Call): Promise<void> {
  const payment = await (await call.client()).payments.get(call.argument(0), { signal: call.signal })
  call.print(payment, () =>
    sheet(
      [
        ['id', payment.id],
        ['status', statusOf(payment, call.paint)],
        ['price', sat(payment.amountSat)],
        ['for', sanitize(payment.description)],
        ['resource', payment.resource === null ? '–' : sanitize(payment.resource)],
        ['node', payment.nodeId],
        ['protocol', payment.protocol],
        ['created', moment(payment.createdAt)],
        ['expires', moment(payment.expiresAt)],
        ['settled', payment.settledAt === null ? '–' : moment(payment.settledAt)],
        ['paid', payment.paidAt === null ? '–' : moment(payment.paidAt)],
        ['redeemed', payment.redeemedAt === null ? '–' : moment(payment.redeemedAt)],
        ['challenge', sanitize(payment.challenge)],
      ],
      call.paint,
    ),
  )
}

export async function list(call: Call): Promise<void> {
  const [node, limit, cursor] = [call.text('node'), call.number('limit'), call.text('cursor')]
  const status = call.text('status') as ListPaymentsParams['status']
  const delivery = call.text('delivery') as ListPaymentsParams['delivery']
  const filter: ListPaymentsParams = {
    ...(status === undefined ? {} : { status }),
    ...(delivery === undefined ? {} : { delivery }),
    ...(node === undefined ? {} : { nodeId: await nodeIdOf(call, node) }),
    ...(limit === undefined ? {} : { limit }),
    ...(cursor === undefined ? {} : { cursor }),
  }
  const { payments: found } = await call.client()
  const page: PaymentPage = call.flag('all')
    ? { payments: await every(found.all(filter, { signal: call.signal })), nextCursor: null }
    : await found.list(filter, { signal: call.signal })
  call.print(page, () => (page.payments.length === 0 ? 'No payments.\n' : tableOf(page.payments, call.paint)))
  if (!call.isJson && page.nextCursor !== null) call.note(`More: --cursor ${sanitize(page.nextCursor)}, or --all`)
}

async function every<T>(pages: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = []
  for await (const one of pages) all.push(one)
  return all
}

function tableOf(payments: ListedPayment[], paint: Paint): string {
  return table(
    ['ID', 'PRICE', 'STATUS', 'PROTOCOL', 'CREATED', 'FOR'],
    payments.map((one) => [
      one.id,
      sat(one.amountSat),
      statusOf(one, paint),
      one.protocol,
      ago(one.createdAt),
      sanitize(one.description),
    ]),
    paint,
  )
}

/** Yellow marks payments that were received but not delivered, which a shop must not miss. */
function statusOf(payment: ListedPayment, paint: Paint): string {
  if (payment.status === 'paid')
    return payment.redeemedAt === null ? paint('yellow', 'paid, undelivered') : paint('green', sanitize(payment.status))
  if (payment.settledAt !== null) return paint('yellow', 'settled, undelivered')
  return paint('dim', sanitize(payment.status))
}
