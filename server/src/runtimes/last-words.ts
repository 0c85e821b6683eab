const MAX_LENGTH = 200
const NOTHING = 'it left no message'

/** Lines of a Java stack trace after the first: they say where the error happened, not what it was. */
const isInsideTrace = (line: string): boolean => /^\s+(at |\.\.\. \d+ more|Suppressed: )/.test(line)
const isException = (line: string): boolean => /^(Exception in thread|Caused by:)/.test(line)

/** The last meaningful line, without its timestamp. For a stack trace, that is the innermost cause. */
export function lastWordsIn(text: string): string {
  const lines = text.split('\n').filter((line) => line.trim() !== '')
  const last = lines.at(-1) ?? ''
  const telling = isInsideTrace(last) ? (lines.findLast(isException) ?? lines.findLast((line) => !isInsideTrace(line))) : last
  const words = (telling ?? last)
    .replace(/^[\d-]+ [\d:]+ /, '')
    // Control characters are removed, because terminals interpret them and people read this text.
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what we remove
    .replace(/[\s\u0000-\u001f\u007f-\u009f]+/g, ' ')
    .trim()
  return [...words].slice(0, MAX_LENGTH).join('') || NOTHING
}
