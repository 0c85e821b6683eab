/** Formatting for a terminal: colors, widths, numbers and times, and the removal of control characters. */

type Stream = NodeJS.WriteStream & { isTTY?: boolean }

/** https://no-color.org: any non-empty value turns colors off. */
export function hasColour(stream: Stream, env = process.env): boolean {
  return Boolean(stream.isTTY) && !env.NO_COLOR && env.TERM !== 'dumb'
}

const CODES = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, cyan: 36 } as const
export type Paint = (style: keyof typeof CODES, text: string) => string

export function painter(stream: Stream): Paint {
  const isOn = hasColour(stream)
  return (style, text) => (isOn ? `\x1b[${CODES[style]}m${text}\x1b[0m` : text)
}

/** Names, messages and bodies come from outside and may contain escape sequences that the terminal would execute. */
export function sanitize(text: string, keep = ''): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the expression matches control characters
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g, (character) =>
    keep.includes(character) ? character : '\ufffd',
  )
}

/** Quotes text in a command line that the user may copy into a shell. */
export const shellWord = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${sanitize(word).replace(/'/g, `'\\''`)}'`

const WIDE = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Emoji_Presentation}\uff01-\uff60]/u
const NARROWER = /\p{Mark}|\u200d|\ufe0f/u

export function widthOf(text: string): number {
  let width = 0
  // biome-ignore lint/suspicious/noControlCharactersInRegex: color codes have no width
  for (const character of text.replace(/\x1b\[\d+m/g, '')) width += NARROWER.test(character) ? 0 : WIDE.test(character) ? 2 : 1
  return width
}

const pad = (text: string, width: number): string => text + ' '.repeat(Math.max(0, width - widthOf(text)))

/** Each column is as wide as its widest cell. The last one is not padded. */
export function table(header: string[], rows: string[][], paint: Paint): string {
  const widths = header.map((_, column) => Math.max(...[header, ...rows].map((row) => widthOf(row[column] ?? ''))))
  const line = (row: string[]): string =>
    row
      .map((cell, column) => pad(cell, widths[column] ?? 0))
      .join('  ')
      .trimEnd()
  return [paint('bold', line(header)), ...rows.map(line)].map((text) => `${text}\n`).join('')
}

export function sheet(rows: [name: string, value: string][], paint: Paint): string {
  const width = Math.max(...rows.map(([name]) => widthOf(name)))
  return rows.map(([name, value]) => `${paint('dim', pad(name, width))}  ${value}\n`).join('')
}

/** 1234567 → 1 234 567, with thin spaces. */
export const grouped = (amount: number): string => String(amount).replace(/\B(?=(\d{3})+$)/g, '\u2009')
export const sat = (amount: number): string => `${grouped(amount)} sat`

export function ago(seconds: number, now = Date.now() / 1000): string {
  const past = Math.round(now - seconds)
  const size = Math.abs(past)
  const [count, unit] =
    size < 60 ? [size, 's'] : size < 3_600 ? [size / 60, 'min'] : size < 172_800 ? [size / 3_600, 'h'] : [size / 86_400, 'days']
  const span = `${Math.floor(count)} ${unit}`
  return past >= 0 ? `${span} ago` : `in ${span}`
}

export const moment = (seconds: number): string =>
  `${new Date(seconds * 1000).toISOString().replace('.000', '')} (${ago(seconds)})`

const FRAMES = [...'⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏']

/** Shows progress on stderr. Without a terminal it prints nothing, to keep logs clean. */
export class Spinner {
  readonly #stream = process.stderr
  #timer: NodeJS.Timeout | undefined
  #text = ''

  show(text: string): void {
    this.#text = sanitize(text)
    if (!this.#stream.isTTY || process.env.TERM === 'dumb' || this.#timer) return
    const started = Date.now()
    const draw = (): void => {
      const elapsed = Date.now() - started
      // A spinner for a fast response would only flicker.
      if (elapsed < 200) return
      const frame = FRAMES[Math.floor(elapsed / 80) % FRAMES.length]
      this.#stream.write(
        `\r\x1b[K${frame} ${this.#text.slice(0, Math.max(10, (this.#stream.columns || 80) - 10))} ${Math.floor(elapsed / 1000)} s`,
      )
    }
    this.#timer = setInterval(draw, 80)
    this.#timer.unref()
  }

  stop(): void {
    if (!this.#timer) return
    clearInterval(this.#timer)
    this.#timer = undefined
    this.#stream.write('\r\x1b[K')
  }
}
