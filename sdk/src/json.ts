/** Undefined if the text is not JSON. The parser's own error would quote the text, which may contain a credential. */
export function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
