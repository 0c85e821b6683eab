import type { Delivery, ListDeliveriesParams, ReplayEventsParams, TestWebhookParams } from '../../../sdk/src/index.ts'
import type { Call } from '../call.ts'
import { Failure, usage } from '../failure.ts'
import { ago, grouped, moment, type Paint, sanitize, sheet, table } from '../terminal.ts'
import { typesIn } from './webhook-view.ts'

/** The latest time that the service accepts. Not the time of this machine, whose clock may be slow. */
const NO_END = 99_999_999_999

export async function test(call: Call): Promise<void> {
  const type = call.text('type') as TestWebhookParams['type']
  const client = await call.client()
  call.spinner.show('Waiting for the receiver')
  const params = type === undefined ? {} : { type }
  const advice = 'The sample may have been sent. Check the receiver before you send another.'
  const result = await call.change(advice, () => client.webhooks.test(call.argument(0), params, { signal: call.signal }))
  const { status, durationMs, response, error } = result
  call.print(result, () =>
    sheet(
      [
        ['status', call.paint(error === null ? 'green' : 'red', String(status ?? 'no response'))],
        ['duration', `${grouped(durationMs)} ms`],
        ...(response ? [['response', oneLine(response)] as [string, string]] : []),
      ],
      call.paint,
    ),
  )
  if (error !== null) throw new Failure('other', 'test_failed', `The receiver did not accept the sample: ${error}`)
}

export async function list(call: Call): Promise<void> {
  const status = call.text('status') as ListDeliveriesParams['status']
  const [limit, cursor] = [call.number('limit'), call.text('cursor')]
  const params: ListDeliveriesParams = {
    ...(status === undefined ? {} : { status }),
    ...(limit === undefined ? {} : { limit }),
    ...(cursor === undefined ? {} : { cursor }),
  }
  const client = await call.client()
  const page = await client.webhooks.deliveries(call.argument(0), params, { signal: call.signal })
  call.print(page, () => (page.deliveries.length === 0 ? 'No deliveries.\n' : tableOf(page.deliveries, call.paint)))
  if (!call.isJson && page.nextCursor !== null) call.note(`More: --cursor ${sanitize(page.nextCursor)}`)
}

export async function redeliver(call: Call): Promise<void> {
  const [id, deliveryId] = [call.argument(0), call.argument(1)]
  const client = await call.client()
  const delivery = await call.change(lookAt(id), () => client.webhooks.redeliver(id, deliveryId, { signal: call.signal }))
  call.print(delivery, () =>
    sheet(
      [
        ['id', sanitize(delivery.id)],
        ['event', sanitize(delivery.eventId)],
        ['type', sanitize(delivery.type)],
        ['status', statusOf(delivery, call.paint)],
        ['next attempt', delivery.nextAttemptAt === null ? '–' : moment(delivery.nextAttemptAt)],
      ],
      call.paint,
    ),
  )
}

export async function replay(call: Call): Promise<void> {
  const [id, from, to, types] = [call.argument(0), call.text('from'), call.text('to'), call.text('types')]
  if (from === undefined) throw usage('--from is required: the beginning of the period.')
  const params: ReplayEventsParams = {
    from: secondsIn('from', from),
    to: to === undefined ? NO_END : secondsIn('to', to),
    ...(types === undefined ? {} : { types: typesIn(types) }),
  }
  const client = await call.client()
  const { count } = await call.change(lookAt(id), () => client.webhooks.replay(id, params, { signal: call.signal }))
  const events = count === 1 ? '1 event' : `${grouped(count)} events`
  call.print({ count }, () => (count === 0 ? 'No events in this period match.\n' : `${events} will be sent.\n`))
}

/** Without an offset, JavaScript would read a time as local and a date as UTC; and it takes 31 February as 3 March. */
function secondsIn(option: string, text: string): number {
  if (/^\d{1,11}$/.test(text)) return Number(text)
  const [, date] = /^(\d{4}-\d\d-\d\d)(?:T\d\d:\d\d(?::\d\d)?(?:Z|[+-]\d\d:\d\d))?$/.exec(text) ?? []
  const [dayMs, timeMs] = [Date.parse(date ?? ''), Date.parse(text)]
  if (date === undefined || Number.isNaN(dayMs + timeMs) || !new Date(dayMs).toISOString().startsWith(date))
    throw usage(`--${option} must be a time such as 2026-01-31T12:00:00Z, a date, or Unix seconds.`)
  return timeMs / 1000
}

const lookAt = (id: string): string =>
  `The service may have accepted the request. To check: boltyard webhooks deliveries ${sanitize(id)}`

function tableOf(deliveries: Delivery[], paint: Paint): string {
  return table(
    ['ID', 'TYPE', 'STATUS', 'ATTEMPTS', 'LAST RESULT', 'NEXT ATTEMPT', 'EVENT'],
    deliveries.map((delivery) => [
      sanitize(delivery.id),
      sanitize(delivery.type),
      statusOf(delivery, paint),
      String(delivery.attempts.length),
      resultOf(delivery),
      delivery.nextAttemptAt === null ? '–' : ago(delivery.nextAttemptAt),
      sanitize(delivery.eventId),
    ]),
    paint,
  )
}

function resultOf({ attempts }: Delivery): string {
  const last = attempts.at(-1)
  return last === undefined ? '–' : `${last.status ?? 'no response'}, ${ago(last.at)}`
}

const COLOURS = { pending: 'yellow', delivered: 'green', failed: 'red' } as const

function statusOf({ status }: Delivery, paint: Paint): string {
  return paint(COLOURS[status] ?? 'bold', sanitize(status))
}

const oneLine = (text: string): string => sanitize(text.replace(/\s+/g, ' ').trim())
