/**
 * Characters rejected in text that other people read, such as names and descriptions. They are invisible or reorder the text around them,
 * so one text can pass for another: control characters, line and paragraph separators, bidirectional embeddings, overrides and isolates,
 * zero-width spaces, invisible operators, annotation marks and the byte order mark. Joiners, direction marks, soft hyphens
 * and tags are allowed: emoji, Persian, Indic and Hebrew text and long words need them.
 */
const DECEPTIVE = '\\u0000-\\u001f\\u007f-\\u009f\\u200b\\u2028-\\u202e\\u2060-\\u2064\\u2066-\\u206f\\ufeff\\ufff9-\\ufffb'

/** JSON Schema patterns: compile them with the `u` flag. */
export const READABLE_OR_EMPTY = `^[^${DECEPTIVE}]*$`
/** Requires at least one visible character. U+2800, the blank Braille pattern, does not count. */
export const READABLE = `^(?=[\\s\\S]*[^\\s\\p{Default_Ignorable_Code_Point}\\u2800])[^${DECEPTIVE}]*$`

/** The rules in words, for error messages. */
export const RULES: Record<string, string> = {
  [READABLE]: 'must contain a visible character, and no control characters, bidirectional controls or zero-width spaces',
  [READABLE_OR_EMPTY]: 'must not contain control characters, bidirectional controls or zero-width spaces',
}

const readable = new RegExp(READABLE, 'u')
export const isReadable = (text: string): boolean => readable.test(text)
