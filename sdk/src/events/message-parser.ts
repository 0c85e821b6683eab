/** A field is undefined if the message does not set it. `retryMs`: how long to wait before reconnecting. */
export type Message = { id?: string | undefined; data?: string | undefined; retryMs?: number | undefined }

/** Parses server-sent events: https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream */
export class MessageParser {
  readonly #decoder = new TextDecoder()
  #line = ''
  #endsInCr = false
  #message: Message = {}

  /** Returns the messages that this chunk completes. */
  push(chunk: Uint8Array): Message[] {
    let text = this.#decoder.decode(chunk, { stream: true })
    if (text === '') return []
    // CR, LF and CRLF all end a line, and a chunk may end between CR and LF.
    if (this.#endsInCr && text.startsWith('\n')) text = text.slice(1)
    this.#endsInCr = text.endsWith('\r')
    const lines = (this.#line + text).split(/\r\n|\r|\n/)
    this.#line = lines.pop() ?? ''
    return lines.flatMap((line) => this.#read(line))
  }

  #read(line: string): Message[] {
    if (line === '') return this.#complete()
    const [, name, value = ''] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? []
    const { data } = this.#message
    if (name === 'data') this.#message.data = data === undefined ? value : `${data}\n${value}`
    // The standard ignores an id with a NUL.
    if (name === 'id' && !value.includes('\0')) this.#message.id = value
    if (name === 'retry' && /^\d+$/.test(value)) this.#message.retryMs = Number(value)
    return []
  }

  #complete(): Message[] {
    const message = this.#message
    this.#message = {}
    return Object.keys(message).length === 0 ? [] : [message]
  }
}
