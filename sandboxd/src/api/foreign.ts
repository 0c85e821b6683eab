import { createHash } from 'node:crypto'
import { bech32, bech32m, createBase58check } from '@scure/base'
import { ApiFault } from './faults.ts'

/** Addresses outside the sandbox. They are parsed as in phoenixd, so that an invalid one causes the same error, but never contacted. */
export type Lnurl = { host: string; tag: string | null }

const PREFIXES = /^(lightning|bitcoin|lnurl):(\/\/)?/i
const LUD17_SCHEMES = /^(phoenix:)?(lnurlp|lnurlw|keyauth):(\/\/)?/i
/** Addresses with a port are invalid: phoenixd takes the text before the colon as the scheme. */
const HAS_PORT = /^[^/?#]*:/

export function readLnurl(source: string): Lnurl {
  const input = source.replace(PREFIXES, '')
  const url = bech32Url(input) ?? plainUrl(input)
  if (!url) throw new ApiFault(500, 'cannot be parsed as a bech32 or as a human readable lnurl')
  const tag = url.searchParams.get('tag')
  if (tag === 'login' && !url.searchParams.get('k1')?.trim()) throw new ApiFault(500, 'the k1 parameter is missing')
  return { host: url.host, tag }
}

function bech32Url(text: string): URL | undefined {
  try {
    // No limit of 90 characters, because almost every real lnurl is longer.
    const { words } = bech32.decode(text as `${string}1${string}`, false)
    return secure(Buffer.from(bech32.fromWords(words)).toString('utf8'))
  } catch {
    // not bech32: the caller tries the other formats
    return undefined
  }
}

function plainUrl(text: string): URL | undefined {
  if (LUD17_SCHEMES.test(text)) {
    const stripped = text.replace(LUD17_SCHEMES, '')
    return HAS_PORT.test(stripped) ? undefined : secure(`https://${stripped}`)
  }
  const url = secure(text)
  const fallback = url?.searchParams.get('lightning')
  return fallback ? bech32Url(fallback) : url
}

function secure(text: string): URL | undefined {
  return URL.canParse(text) && new URL(text).protocol === 'https:' ? new URL(text) : undefined
}

const BASE58CHECK = createBase58check((data: Uint8Array) => createHash('sha256').update(data).digest())
const REGTEST_P2PKH = 111
const REGTEST_P2SH = 196

export function isRegtestAddress(address: string): boolean {
  return isSegwitAddress(address) || isBase58Address(address)
}

function isSegwitAddress(address: string): boolean {
  for (const code of [bech32, bech32m]) {
    const decoded = code.decodeUnsafe(address)
    const [version, ...words] = decoded?.words ?? []
    const program = decoded?.prefix === 'bcrt' ? code.fromWordsUnsafe(words) : undefined
    if (!program || version === undefined) continue
    if (code === bech32 && version === 0) return program.length === 20 || program.length === 32
    if (code === bech32m && version >= 1 && version <= 16) return program.length >= 2 && program.length <= 40
  }
  return false
}

function isBase58Address(address: string): boolean {
  try {
    const bytes = BASE58CHECK.decode(address)
    return bytes.length === 21 && (bytes[0] === REGTEST_P2PKH || bytes[0] === REGTEST_P2SH)
  } catch {
    return false
  }
}
