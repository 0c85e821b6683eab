import { randomUUID } from 'node:crypto'
import type { ListedPayment, PaymentFilter, PaymentPage, PaymentStatus, PaymentWish } from '../../sdk/src/index.ts'
import type { Call } from './call.ts'
import { usage } from './failure.ts'
import { readSecretOrInput } from './files.ts'
import { ago, harmless, moment, type Paint, sat, sheet, table } from './terminal.ts'

export async function create(call: Call): Promise<void> {
  const [nodeId, amountSat, description] = [call.text('node'), call.number('amount-sat'), call.text('description')]
  if (nodeId === undefined || amountSat === undefined || description === undefined) {
    throw usage('--node, --amount-sat and --description are all needed.', 'boltyard payments create --help')
  }
  const protocol = call.text('protocol') as PaymentWish['protocol']
  const idempotencyKey = call.text('idempotency-key') ?? randomUUID()
  const client = await call.client()
  const wish = { nodeId, amountSat, description, ...(protocol === undefined ? {} : { protocol }) }
  const advice = `It is not known whether the payment was made. The same with --idempotency-key ${idempotencyKey} gives it, or makes it.`
  const payment = await call.change(advice, () => client.payments.create(wish, { idempotencyKey, signal: call.signal }))
  call.print(payment, () =>
    sheet(
      [
        ['id', payment.id],
        ['price', sat(amountSat)],
        ['protocol', payment.protocol],
        ['challenge', harmless(payment.challenge)],
      ],
      call.paint,
    ),
  )
}

/** The credential is what the customer paid for: whoever reads it can use it. So it is never an argument. */
async function presented(call: Call): Promise<{ id: string; credential: string }> {
  const credential = await readSecretOrInput(call.text('credential-file') ?? '-', 'the customer’s credential', call.signal)
  const { paymentIdOf } = await import('../../sdk/src/index.ts')
  const id = call.positionals[0] ?? paymentIdOf(credential)
  if (id === undefined)
    throw usage(
      'That is no credential of a payment of this service: it names none.',
      'It is the whole value of the customer’s Authorization header.',
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
  const advice = `It is not known whether the delivery was claimed. The same with --request-id ${requestId} gives the same answer, or claims it.`
  const redeemed = await call.change(advice, () =>
    client.payments.redeem(
      id,
      { credential, requestId, ...(call.flag('single-use') ? { singleUse: true } : {}) },
      { signal: call.signal },
    ),
  )
  call.print(redeemed, () =>
    sheet(
      [
        ['id', redeemed.id],
        ['status', `${call.paint('green', redeemed.status)}, yours to deliver`],
        ['price', sat(redeemed.amountSat)],
        ['for', harmless(redeemed.description)],
        ['redeemed', moment(redeemed.redeemedAt)],
        ...receipt(redeemed),
      ],
      call.paint,
    ),
  )
}

const receipt = (paid: { receipt?: string }): [string, string][] =>
  paid.receipt === undefined ? [] : [['receipt', harmless(paid.receipt)]]

export async function get(call: Call): Promise<void> {
  const payment = await (await call.client()).payments.get(call.argument(0), { signal: call.signal })
  call.print(payment, () =>
    sheet(
      [
        ['id', payment.id],
        ['status', statusOf(payment, call.paint)],
        ['price', sat(payment.amountSat)],
        ['for', harmless(payment.description)],
        ['node', payment.nodeId],
        ['protocol', payment.protocol],
        ['created', moment(payment.createdAt)],
        ['expires', moment(payment.expiresAt)],
        ['settled', payment.settledAt === null ? '–' : moment(payment.settledAt)],
        ['paid', payment.paidAt === null ? '–' : moment(payment.paidAt)],
        ['challenge', harmless(payment.challenge)],
      ],
      call.paint,
    ),
  )
}

export async function list(call: Call): Promise<void> {
  const [status, nodeId, limit, cursor] = [call.text('status'), call.text('node'), call.number('limit'), call.text('cursor')]
  const filter: PaymentFilter = {
    ...(status === undefined ? {} : { status: status as PaymentStatus }),
    ...(nodeId === undefined ? {} : { nodeId }),
    ...(limit === undefined ? {} : { limit }),
    ...(cursor === undefined ? {} : { cursor }),
  }
  const { payments: found } = await call.client()
  const page: PaymentPage = call.flag('all')
    ? { payments: await every(found.all(filter, { signal: call.signal })), nextCursor: null }
    : await found.list(filter, { signal: call.signal })
  call.print(page, () => (page.payments.length === 0 ? 'No payments.\n' : tableOf(page.payments, call.paint)))
  if (!call.isJson && page.nextCursor !== null) call.note(`More: --cursor ${harmless(page.nextCursor)}, or --all`)
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
      harmless(one.description),
    ]),
    paint,
  )
}

function statusOf({ status }: ListedPayment, paint: Paint): string {
  return paint(status === 'paid' ? 'green' : status === 'expired' ? 'dim' : 'yellow', harmless(status))
}
