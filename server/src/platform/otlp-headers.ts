import { validateHeaderName, validateHeaderValue } from 'node:http'

/** Headers as OpenTelemetry's variables contain them: `name=value,name=value`, with values encoded as in a URL. */
export function headersIn(text: string): Record<string, string> | undefined {
  const pairs = text.split(',').filter((pair) => pair.trim() !== '')
  if (!pairs.every((pair) => pair.includes('='))) return undefined
  try {
    return Object.fromEntries(
      pairs.map((pair) => {
        const at = pair.indexOf('=')
        const [name, value] = [pair.slice(0, at).trim(), decodeURIComponent(pair.slice(at + 1).trim())]
        validateHeaderName(name)
        validateHeaderValue(name, value)
        return [name, value]
      }),
    )
  } catch {
    // The caller says what is expected. The error would contain the value, which is a secret.
    return undefined
  }
}
