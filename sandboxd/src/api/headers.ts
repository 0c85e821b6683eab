import { ApiFault, badRequest } from './faults.ts'

const TOKEN = "[!#$%&'*+.^_`|~0-9A-Za-z-]+"
const TOKEN68 = /^[A-Za-z0-9._~+/-]+=*$/
const PARAMETERS = new RegExp(`^${TOKEN}\\s*=\\s*("[^"]*"|${TOKEN})(\\s*,\\s*${TOKEN}\\s*=\\s*("[^"]*"|${TOKEN}))*$`)

/** Undefined if there are no Basic credentials. A value that is neither a token nor parameters is a bad request. */
export function basicCredentials(authorization: string | undefined): string | undefined {
  const [, scheme = '', blob = ''] = new RegExp(`^(${TOKEN})\\s+(\\S.*)$`).exec(authorization?.trim() ?? '') ?? []
  if (blob === '') return undefined
  if (!TOKEN68.test(blob)) {
    if (PARAMETERS.test(blob)) return undefined
    throw badRequest('Invalid auth header')
  }
  return scheme.toLowerCase() === 'basic' ? Buffer.from(blob, 'base64').toString('utf8') : undefined
}

/** Checked after the call was carried out, because that is when phoenixd chooses the format of the response. */
export function requireJsonAccepted(accept: string | undefined): void {
  if (accept === undefined) return
  const types = accept.split(',').map((item) => item.split(';')[0]?.trim().toLowerCase() ?? '')
  if (!types.every((type) => type === '*' || /^[^\s/]+\/[^\s/]+$/.test(type)))
    throw badRequest(`Illegal Accept header format: ${accept}`)
  if (!types.some((type) => ['*', '*/*', 'application/*', 'application/json'].includes(type))) throw new ApiFault(406, '')
}
