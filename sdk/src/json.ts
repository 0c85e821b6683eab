/** The value of JSON text; undefined if it is none. The parser's own error would quote the text, which may contain a credential. */
export function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
