/**
 * Text that other people read: names, and what a customer pays for. Some characters show nothing or reverse the text around them, so that
 * one thing looks like another: control characters, line and paragraph separators, bidirectional embeddings, overrides and isolates,
 * zero-width spaces and the byte order mark. Joiners and direction marks are allowed: emoji, Persian, Indic and Hebrew text needs them.
 */
const DECEPTIVE = '\\u0000-\\u001f\\u007f-\\u009f\\u200b\\u2028-\\u202e\\u2060\\u2066-\\u2069\\ufeff'

/** Patterns as JSON Schema has them; compile them with the flag u. */
export const READABLE_OR_EMPTY = `^[^${DECEPTIVE}]*$`
/** With at least one visible character: U+2800 is Braille without a dot. */
export const READABLE = `^(?=[\\s\\S]*[^\\s\\p{Default_Ignorable_Code_Point}\\u2800])[^${DECEPTIVE}]*$`

/** The same in words, for whoever has to correct it. */
export const RULES: Record<string, string> = {
  [READABLE]: 'must have visible characters, and no control, bidirectional or zero-width ones',
  [READABLE_OR_EMPTY]: 'must have no control, bidirectional or zero-width characters',
}

const readable = new RegExp(READABLE, 'u')
export const isReadable = (text: string): boolean => readable.test(text)
