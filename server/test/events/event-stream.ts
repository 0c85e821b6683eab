import { eventually, type Server } from '../support/server.ts'

export type Message = {
  id: string
  type: string
  event: { id: string; type: string; createdAt: number; data: Record<string, unknown> }
}
export type EventStream = {
  status: number
  headers: Headers
  messages: Message[]
  comments: string[]
  /** The cursor that the stream begins with, once it has arrived. */
  starts: string[]
  /** Resolves when the server has ended the stream. */
  ended: Promise<void>
  /** Waits for the first message of this type, and returns it. */
  first: (type: string) => Promise<Message>
  close: () => void
}

/** Reads `GET /v1/events/stream` as a client of server-sent events does. */
export async function openEventStream(server: Server, key: string, query = '', lastEventId?: string): Promise<EventStream> {
  const leaving = new AbortController()
  const response = await fetch(`${server.url}/v1/events/stream${query}`, {
    headers: { authorization: `Bearer ${key}`, ...(lastEventId === undefined ? {} : { 'last-event-id': lastEventId }) },
    signal: leaving.signal,
  })
  const messages: Message[] = []
  const comments: string[] = []
  const starts: string[] = []
  const read = async (): Promise<void> => {
    let text = ''
    for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += chunk
      const blocks = text.split('\n\n')
      text = blocks.pop() ?? ''
      for (const block of blocks) {
        const [, id = '', type = '', data = ''] = /^id: (.*)\nevent: (.*)\ndata: (.*)$/.exec(block) ?? []
        if (block.startsWith(':') || block.startsWith('retry:')) comments.push(block)
        else if (/^id: \S+$/.test(block)) starts.push(block.slice('id: '.length))
        else messages.push({ id, type, event: JSON.parse(data) })
      }
    }
  }
  return {
    status: response.status,
    headers: response.headers,
    messages,
    comments,
    starts,
    ended: read().catch(() => undefined),
    first: (type) =>
      eventually(() => {
        const found = messages.find((message) => message.type === type)
        if (!found) throw new Error(`only ${messages.map((message) => message.type)}`)
        return found
      }, `the event ${type}`),
    close: () => leaving.abort(),
  }
}
