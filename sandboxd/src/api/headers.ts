import { ApiFault, badRequest } from './faults.ts'

const TOKEN = "[!#$%&'*+.^_`|~0-9A-Za-z-]+"
const TOKEN68 = /^[A-Za-z0-9._~+/-]+=*$/
const PARAMETERS = new RegExp(`^${TOKEN}\\s*=\\s*("[^"]*"|${TOKEN})(\\s*,\\s*${TOKEN}\\s*=\\s*("[^"]*"|${TOKEN}))*$`)

/** Undefined: no Basic credentials. What is neither a token nor parameters is no authorization at all, but a bad request. */
export function basicCredentials(authorization: string | undefined): string | undefined {
  const [, scheme = '', blob = ''] = new RegExp(`^(${TOKEN})\\s+(\\S.*)$`).exec(authorization?.trim() ?? '') ?? []
  if (blob === '') return undefined
  if (!TOKEN68.test(blob)) {
    if (PARAMETERS.test(blob)) return undefined
    throw badRequest('Invalid auth header')
  }
  return scheme.toLowerCase() === 'basic' ? Buffer.from(blob, 'base64').toString('utf8') : undefined
}

/** Looked at after the call was done, since that is when phoenixd chooses how to write the answer. */
export function requireJsonAccepted(accept: string | undefined): void {
  if (accept === undefined) return
  const types = accept.split(',').map((item) => item.split(';')[0]?.trim().toLowerCase() ?? '')
  if (!types.every((type) => type === '*' || /^[^\s/]+\/[^\s/]+$/.test(type)))
    throw badRequest(`Illegal Accept header format: ${accept}`)
  if (!types.some((type) => ['*', '*/*', 'application/*', 'application/json'].includes(type))) throw new ApiFault(406, '')
}
