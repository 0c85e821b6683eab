/** BIP 173, as much as reading an invoice takes: it has no limit of length, and only lower case comes here. */

const ALPHABET = 'qpzry9x8gf2tvdw0s3jn54khce6mua7l'
const GENERATOR = [0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd, 0x2a1462b3]
const CHECKSUM_WORDS = 6

/** The words of five bits after the last "1"; undefined: the checksum does not hold, so somebody mistyped or cut it. */
export function readBech32(text: string): number[] | undefined {
  const split = text.lastIndexOf('1')
  const words = [...text.slice(split + 1)].map((character) => ALPHABET.indexOf(character))
  if (split < 1 || words.length < CHECKSUM_WORDS || words.includes(-1)) return undefined
  const prefix = [...text.slice(0, split)].map((character) => character.charCodeAt(0))
  const expanded = [...prefix.map((code) => code >> 5), 0, ...prefix.map((code) => code & 31), ...words]
  return polymod(expanded) === 1 ? words.slice(0, -CHECKSUM_WORDS) : undefined
}

function polymod(values: number[]): number {
  let sum = 1
  for (const value of values) {
    const top = sum >>> 25
    sum = ((sum & 0x1ffffff) << 5) ^ value
    GENERATOR.forEach((factor, bit) => {
      if ((top >>> bit) & 1) sum ^= factor
    })
  }
  return sum
}

/** Undefined: what is left over after whole bytes is not padding. */
export function toBytes(words: number[]): Buffer | undefined {
  const bytes: number[] = []
  let [held, bits] = [0, 0]
  for (const word of words) {
    held = (held << 5) | word
    bits += 5
    if (bits < 8) continue
    bits -= 8
    bytes.push((held >> bits) & 0xff)
    held &= (1 << bits) - 1
  }
  return bits < 5 && held === 0 ? Buffer.from(bytes) : undefined
}
