import { createHmac } from 'node:crypto'
import { readFileSync } from 'node:fs'

/**
 * A second implementation of credentials, which works differently on purpose: it reads all fields before it checks their order, and decodes
 * base64 through hex digits. So the same mistake is unlikely in both.
 */
export const hex = (text: string): Buffer => Buffer.from(text, 'hex')

export type Vector = {
  n: number
  name: string
  now: number
  service: string
  rootKeyHex: string
  paymentHashHex: string
  tokenIdHex: string
  credential: string
  expect: { valid: boolean; reason?: string }
  macaroonHex?: string
  signatureHex?: string
  identifierHex?: string
  caveats?: string[]
}
type TestKeys = Record<'rootKey' | 'preimage' | 'paymentHash' | 'tokenId', string>

export const vectors = JSON.parse(readFileSync(new URL('../../../test/vectors/l402.json', import.meta.url), 'utf8')) as {
  keys: { paymentA: TestKeys; paymentB: TestKeys }
  vectors: Vector[]
}

export const A = {
  rootKey: hex(vectors.keys.paymentA.rootKey),
  preimage: vectors.keys.paymentA.preimage,
  paymentId: 'pay_example_1',
  paymentHash: hex(vectors.keys.paymentA.paymentHash),
  tokenId: hex(vectors.keys.paymentA.tokenId),
}
export const B = {
  rootKey: hex(vectors.keys.paymentB.rootKey),
  preimage: vectors.keys.paymentB.preimage,
  paymentId: 'pay_example_2',
  paymentHash: hex(vectors.keys.paymentB.paymentHash),
  tokenId: hex(vectors.keys.paymentB.tokenId),
}
/** The expiry of the worked example, one day after it was issued. */
export const END = 1_800_086_400
export const FRESH = ['services=boltyard:0', `boltyard_valid_until=${END}`, 'payment_id=pay_example_1']

export type Field = [kind: number, content: string | Buffer] | 'end'

export function varint(value: number): number[] {
  return value < 128 ? [value] : [(value % 128) + 128, ...varint(Math.floor(value / 128))]
}

export function written(...fields: Field[]): Buffer {
  const parts = fields.flatMap((field) => {
    if (field === 'end') return [Buffer.of(0)]
    const content = Buffer.from(field[1] as string)
    return [Buffer.from([field[0], ...varint(content.length)]), content]
  })
  return Buffer.concat([Buffer.of(2), ...parts])
}

export const identifier = (payment: { paymentHash: Buffer; tokenId: Buffer }): Buffer =>
  hex(`0000${payment.paymentHash.toString('hex')}${payment.tokenId.toString('hex')}`)

export function signature(rootKey: Buffer, ...texts: (string | Buffer)[]): Buffer {
  let key = createHmac('sha256', 'macaroons-key-generator').update(rootKey).digest()
  for (const text of texts) key = createHmac('sha256', key).update(text).digest()
  return key
}

/** Correctly signed, whatever is wrong with the caveats. */
export function macaroon(
  caveats: (string | Buffer)[],
  { rootKey = A.rootKey, id = identifier(A), location = 'boltyard' } = {},
): Buffer {
  return written([1, location], [2, id], 'end', ...caveats.flatMap((caveat): Field[] => [[2, caveat], 'end']), 'end', [
    6,
    signature(rootKey, id, ...caveats),
  ])
}

export function credential(bytes: Buffer, preimage = A.preimage): string {
  return `L402 ${bytes.toString('base64')}:${preimage}`
}

/** The macaroon after a holder has added caveats without the root key: each signature is the key of the next. */
export function attenuated(bytes: Buffer, ...caveats: (string | Buffer)[]): Buffer {
  return caveats.reduce<Buffer>((before, caveat) => {
    const rest = written([2, caveat], 'end', 'end', [6, createHmac('sha256', before.subarray(-32)).update(caveat).digest()])
    return Buffer.concat([before.subarray(0, -35), rest.subarray(1)])
  }, bytes)
}

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'
/** Two characters are twelve bits, or three hex digits. */
const DIGITS = new Map(
  [...ALPHABET].flatMap((one, high) =>
    [...ALPHABET].map((other, low) => [one + other, (high * 64 + low).toString(16).padStart(3, '0')]),
  ),
)

function bytesOf(base64: string): Buffer | undefined {
  const characters = base64
    .replace(/={1,2}$/, '')
    .replaceAll('-', '+')
    .replaceAll('_', '/')
  const pairs = `${characters}${characters.length % 2 === 1 ? 'A' : ''}`.match(/.{2}/gs)?.map((pair) => DIGITS.get(pair)) ?? []
  if (characters.length % 4 === 1 || pairs.includes(undefined)) return undefined
  return hex(pairs.join('').slice(0, Math.floor((characters.length * 6) / 8) * 2))
}

export type Meaning = { location: string; identifier: string; caveats: string[]; signature: string }

export function meaningOfMacaroon(bytes: Buffer): Meaning | undefined {
  const fields: { kind: number; content: string }[] = []
  for (let rest = bytes.subarray(1); rest.length > 0; ) {
    const kind = rest[0] as number
    const lengthBytes = kind === 0 ? [] : [...rest.subarray(1, rest.findIndex((byte, at) => at > 0 && byte < 128) + 1)]
    const length = lengthBytes.reduceRight((sum, byte) => sum * 128 + (byte % 128), 0)
    const start = 1 + lengthBytes.length
    if (kind !== 0 && varint(length).join() !== lengthBytes.join()) return undefined
    if (start + length > rest.length) return undefined
    fields.push({ kind, content: rest.toString('hex', start, start + length) })
    rest = rest.subarray(start + length)
  }
  const location = fields[0]?.kind === 1 ? fields[0].content : ''
  const others = fields[0]?.kind === 1 ? fields.slice(1) : fields
  if (bytes[0] !== 2 || !/^2 0 (2 0 )*0 6$/.test(others.map(({ kind }) => kind).join(' '))) return undefined
  const [first, ...caveats] = others.filter(({ kind }) => kind === 2).map(({ content }) => content)
  const last = others.at(-1)?.content ?? ''
  return last.length === 64 ? { location, identifier: first ?? '', caveats, signature: last } : undefined
}

/** The meaning of a credential as text, without scheme, case, base64 variant and location. */
export function meaningOf(text: string): string | undefined {
  const [scheme, ...others] = text.split(' ').filter((word) => word !== '')
  const [base64, preimage, ...more] = others.join(' ').split(':')
  if (
    !['l402', 'lsat'].includes(scheme?.toLowerCase() ?? '') ||
    base64 === undefined ||
    preimage === undefined ||
    more.length > 0
  )
    return
  if (preimage.length !== 64 || [...preimage.toLowerCase()].some((digit) => !'0123456789abcdef'.includes(digit))) return
  const { location: _, ...meaning } = meaningOfMacaroon(bytesOf(base64) ?? Buffer.alloc(0)) ?? {}
  return 'signature' in meaning ? JSON.stringify([meaning, preimage.toLowerCase()]) : undefined
}
