import type { EventsOptions, StreamedEvent } from '../../../sdk/src/index.ts'
import type { Call } from '../call.ts'
import { Failure } from '../failure.ts'

/** Passes events to `handle` until the user interrupts the command, which is its usual end and not an error. */
export async function follow(
  call: Call,
  options: EventsOptions,
  ready: string,
  handle: (event: StreamedEvent) => Promise<void> | void,
): Promise<void> {
  const client = await call.client()
  let note = ready
  const onConnect = (): void => {
    call.note(note)
    note = 'Reconnected.'
  }
  for await (const event of client.events({ ...options, signal: call.signal, onConnect })) await handle(event)
  const { reason } = call.signal
  if (!(reason instanceof Failure && reason.exit === 'interrupted')) throw reason
}
