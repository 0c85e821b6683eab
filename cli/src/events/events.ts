import type { AccountEvent, EventPage, ListEventsParams } from '../../../sdk/src/index.ts'
import type { Call } from '../call.ts'
import { usage } from '../failure.ts'
import { nodeIdOf } from '../nodes/node-id.ts'
import { sanitize, table } from '../terminal.ts'
import { lineOf, subjectOf, timeOf } from './event-view.ts'
import { follow } from './following.ts'

export async function events(call: Call): Promise<void> {
  const [types, node, after, limit] = [call.text('types'), call.text('node'), call.text('after'), call.number('limit')]
  if (call.flag('follow') && limit !== undefined) throw usage('--limit cannot be combined with --follow.')
  const filter = {
    ...(types === undefined ? {} : { types }),
    ...(node === undefined ? {} : { nodeId: await nodeIdOf(call, node) }),
  }
  if (call.flag('follow')) {
    const show = (event: AccountEvent): void => call.printLine(event, () => lineOf(event, subjectOf(event)))
    return follow(call, { ...filter, after }, 'Waiting for events. Press Ctrl-C to stop.', show)
  }
  const page = await firstPage(call, {
    ...filter,
    ...(after === undefined ? {} : { cursor: after }),
    ...(limit === undefined ? {} : { limit }),
  })
  call.print(page, () => (page.events.length === 0 ? 'No events.\n' : tableOf(page, call)))
  if (!call.isJson) call.note(`To continue: --after ${sanitize(page.nextCursor)}`)
}

/** With a filter, a page can be empty although later ones are not. */
async function firstPage(call: Call, params: ListEventsParams): Promise<EventPage> {
  const client = await call.client()
  for (let { cursor } = params; ; ) {
    const page = await client.events.list({ ...params, ...(cursor === undefined ? {} : { cursor }) }, { signal: call.signal })
    if (page.events.length > 0 || page.nextCursor === cursor) return page
    cursor = page.nextCursor
  }
}

function tableOf({ events }: EventPage, { paint }: Call): string {
  return table(
    ['TIME', 'TYPE', 'ID', 'ABOUT'],
    events.map((event) => [timeOf(event), sanitize(event.type), sanitize(event.id), subjectOf(event)]),
    paint,
  )
}
