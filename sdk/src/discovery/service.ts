import { isHttpUrl } from '../../../protocol/src/x402-binding.ts'

export type Service = {
  /** The name of the service. */
  title: string
  description?: string | undefined
  /** The version of the API. Default: `1.0.0`. */
  version?: string | undefined
  /** The URL that customers use, with a path if your proxy removes one. Default: the documents contain paths only. */
  publicUrl?: string | undefined
  /** At most 5. */
  categories?: readonly string[] | undefined
  /** URLs or paths. With `llms`, no llms.txt is generated. */
  docs?: { apiReference?: string | undefined; homepage?: string | undefined; llms?: string | undefined } | undefined
  /** Your own OpenAPI 3 document. Prices are added to its operations. */
  openapi?: object | undefined
}

export const MAX_CATEGORIES = 5
const URL_OR_PATH = /^(?:https?:\/\/\S+|\/\S*)$/

export const isUrlOrPath = (value: unknown): boolean => typeof value === 'string' && URL_OR_PATH.test(value)

/** Throws on invalid options, so that they are found at startup. */
export function checkService({ title, publicUrl, categories = [], docs = {} }: Service): void {
  if (typeof title !== 'string' || title.trim() === '')
    throw new TypeError('`title` is missing. Set it to the name of your service.')
  if (publicUrl !== undefined && (!isHttpUrl(publicUrl) || publicUrl.includes('?')))
    throw new TypeError('`publicUrl` must be an http or https URL without a user name, password, query or fragment.')
  if (categories.length > MAX_CATEGORIES) throw new TypeError(`\`categories\` must have at most ${MAX_CATEGORIES} entries.`)
  for (const [name, value] of Object.entries(docs))
    if (value !== undefined && !isUrlOrPath(value))
      throw new TypeError(`\`docs.${name}\` must be a URL, or a path that starts with /.`)
}

/** The public path of the service, without a slash at its end. */
export const basePathOf = ({ publicUrl }: Service): string =>
  publicUrl === undefined ? '' : new URL(publicUrl).pathname.replace(/\/+$/, '')

/** A full URL if the seller has set `publicUrl`. Never taken from a request, because the client chooses the Host header. */
export const addressOf = ({ publicUrl }: Service, path: string): string =>
  publicUrl === undefined ? path : `${publicUrl.replace(/\/+$/, '')}${path}`

export const OPENAPI = '/openapi.json'
export const L402_JSON = '/.well-known/l402.json'
export const LLMS = '/llms.txt'
