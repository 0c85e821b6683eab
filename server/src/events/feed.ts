import { DEFAULT_EVENT_PAGE_SIZE, EVENT_TYPES, type EventType } from '../../../contract/src/events.ts'
import { isId } from '../platform/ids.ts'
import { badCursor, Problem } from '../problems.ts'
import type { Database } from '../store/db.ts'
import { type EventRow, type FeedFilter, type FeedPage, listenForEvents, readFeed } from '../store/events/feed.ts'
import { cursorOf, seqIn } from './cursor.ts'

export type Event = Pick<EventRow, 'id' | 'createdAt' | 'data'> & { type: EventType; accountId: string }
/** An event, and the cursor that continues after it. */
export type FollowedEvent = { event: Event; cursor: string }
export type EventPage = { events: Event[]; nextCursor: string }
export type EventsParams = {
  cursor?: string
  limit?: number
  /** Types or groups such as `payment.*`, separated by commas. */
  types?: string
  nodeId?: string
}

const FOLLOWED_AT_ONCE = 100
const LOOK_AGAIN_MS = 30_000

/** The events of an account, in order, for as long as they are kept. */
export class EventFeed {
  readonly #sql: Database
  readonly #waiting = new Map<string, Set<() => void>>()
  readonly #unlisten: () => void

  constructor(sql: Database) {
    this.#sql = sql
    const wake = (accountId: string): void => {
      for (const resolve of this.#waiting.get(accountId) ?? []) resolve()
    }
    this.#unlisten = listenForEvents(sql, {
      onAdded: wake,
      onStart: () => {
        for (const accountId of this.#waiting.keys()) wake(accountId)
      },
    })
  }

  async list(accountId: string, { cursor, limit = DEFAULT_EVENT_PAGE_SIZE, types, nodeId }: EventsParams): Promise<EventPage> {
    const after = cursor === undefined ? undefined : seqIn(accountId, cursor)
    const page = await this.#read(accountId, after, limit, filterOf({ types, nodeId }))
    return { events: page.events.map((row) => eventOf(accountId, row)), nextCursor: cursorOf(accountId, page.readUpTo) }
  }

  /**
   * Yields the events after the cursor, and then new events as they happen; without a cursor, only new events. Ends when the
   * signal aborts. Rejects before yielding anything if the cursor is invalid. The returned `cursor` is the place where it starts.
   */
  async follow(
    accountId: string,
    { cursor, types, nodeId }: Omit<EventsParams, 'limit'>,
    signal: AbortSignal,
  ): Promise<{ cursor: string; events: AsyncGenerator<FollowedEvent> }> {
    const filter = filterOf({ types, nodeId })
    const after = cursor === undefined ? (await readFeed(this.#sql, accountId, { limit: 0 })).lastSeq : seqIn(accountId, cursor)
    const first = await this.#read(accountId, after, FOLLOWED_AT_ONCE, filter)
    return { cursor: cursorOf(accountId, after), events: this.#follow(accountId, first, filter, signal) }
  }

  async *#follow(accountId: string, first: FeedPage, filter: FeedFilter, signal: AbortSignal): AsyncGenerator<FollowedEvent> {
    for (let page = first; ; ) {
      for (const row of page.events) yield { event: eventOf(accountId, row), cursor: cursorOf(accountId, row.seq) }
      const after = page.readUpTo
      // Registered before reading, so that no event in between is missed.
      const added = this.#nextAdded(accountId, signal)
      page = await this.#read(accountId, after, FOLLOWED_AT_ONCE, filter)
      if (page.readUpTo === after) {
        await added.promise
        if (signal.aborted) return
        page = await this.#read(accountId, after, FOLLOWED_AT_ONCE, filter)
      }
      added.cancel()
      if (signal.aborted) return
    }
  }

  /** Resolves when the account may have new events, and when the signal aborts. */
  #nextAdded(accountId: string, signal: AbortSignal): { promise: Promise<void>; cancel: () => void } {
    let resolve: () => void = () => undefined
    const promise = new Promise<void>((done) => {
      resolve = done
    })
    const waiting = this.#waiting.get(accountId) ?? new Set()
    this.#waiting.set(accountId, waiting.add(resolve))
    // A notification can be lost with the connection that should have sent it.
    const timer = setTimeout(resolve, LOOK_AGAIN_MS)
    timer.unref()
    signal.addEventListener('abort', resolve)
    const cancel = (): void => {
      clearTimeout(timer)
      signal.removeEventListener('abort', resolve)
      waiting.delete(resolve)
      if (waiting.size === 0 && this.#waiting.get(accountId) === waiting) this.#waiting.delete(accountId)
    }
    void promise.then(cancel)
    return { promise, cancel }
  }

  /** Rejects if the reader is ahead of the feed, or so far behind that it has missed events. */
  async #read(accountId: string, after: number | undefined, limit: number, filter: FeedFilter): Promise<FeedPage> {
    const page = await readFeed(this.#sql, accountId, { ...filter, after, limit })
    if (after === undefined) return page
    if (after > page.lastSeq) throw badCursor()
    if (after < page.removedSeq)
      throw new Problem('cursor_expired', 'Events after this cursor have been removed. Continue with oldestCursor.', {
        details: { oldestCursor: cursorOf(accountId, page.removedSeq) },
      })
    return page
  }

  close(): void {
    this.#unlisten()
  }
}

const eventOf = (accountId: string, { id, type, createdAt, data }: EventRow): Event => ({
  id,
  type: type as EventType,
  createdAt,
  accountId,
  data,
})

function filterOf({ types, nodeId }: { types?: string | undefined; nodeId?: string | undefined }): FeedFilter {
  return {
    ...(types === undefined ? {} : { types: typesIn(types) }),
    // An invalid id matches nothing, and may contain bytes that PostgreSQL rejects.
    ...(nodeId === undefined ? {} : { nodeId: isId('node', nodeId) ? nodeId : '' }),
  }
}

/** Throws if a name matches no type, because that reader would wait for events that never come. */
function typesIn(list: string): EventType[] {
  const names = list.split(',')
  const matches = (name: string): EventType[] =>
    EVENT_TYPES.filter((type) => type === name || (name.endsWith('.*') && type.startsWith(name.slice(0, -1))))
  const unknown = names.find((name) => matches(name).length === 0)
  if (unknown !== undefined)
    throw new Problem(
      'bad_request',
      'The query parameter "types" must be a list of event types such as payment.settled or payment.*, separated by commas.',
    )
  return [...new Set(names.flatMap(matches))]
}
