/**
 * QR codes (ISO/IEC 18004) for invoices: alphanumeric mode, error correction level L. Always mask 0: the text of an invoice is as good as
 * random, so no mask is better than another.
 */

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ $%*+-./:'
/** By version, from 1 to 40. */
const ECC_BYTES = [
  7, 10, 15, 20, 26, 18, 20, 24, 30, 18, 20, 24, 26, 30, 22, 24, 28, 30, 28, 28, 28, 28, 30, 30, 26, 28, 30, 30, 30, 30, 30, 30,
  30, 30, 30, 30, 30, 30, 30, 30,
]
const BLOCKS = [
  1, 1, 1, 1, 1, 2, 2, 2, 2, 4, 4, 4, 4, 4, 6, 6, 6, 6, 7, 8, 8, 9, 9, 10, 12, 12, 12, 13, 14, 15, 16, 17, 18, 19, 19, 20, 21, 22,
  24, 25,
]
/** Level L with mask 0. */
const FORMAT = bch(0b01000, 10, 0x537) ^ 0x5412

/** Rows of dark and light modules. Undefined if the text has other characters, or is too long. */
export function qrCode(text: string): boolean[][] | undefined {
  if (![...text].every((char) => ALPHABET.includes(char))) return undefined
  for (let version = 1; version <= 40; version++) {
    const data = dataOf(text, version)
    if (data) return new Drawing(version).draw(withErrorCorrection(data, version))
  }
  return undefined
}

const lengthBits = (version: number): number => (version < 10 ? 9 : version < 27 ? 11 : 13)
const eccBytes = (version: number): number => ECC_BYTES[version - 1] ?? 0
const blocks = (version: number): number => BLOCKS[version - 1] ?? 0
const alignments = (version: number): number => (version === 1 ? 0 : Math.floor(version / 7) + 2)

/** The modules that are left for data and error correction, in bytes. */
function capacity(version: number): number {
  const count = alignments(version)
  const patterns = count === 0 ? 0 : (25 * count - 10) * count - 55
  return ((16 * version + 128) * version + 64 - patterns - (version >= 7 ? 36 : 0)) >> 3
}

/** Undefined if the version is too small. */
function dataOf(text: string, version: number): number[] | undefined {
  const bytes = capacity(version) - eccBytes(version) * blocks(version)
  const bits: number[] = []
  const put = (value: number, count: number): void => {
    for (let at = count - 1; at >= 0; at--) bits.push((value >> at) & 1)
  }
  put(0b0010, 4)
  put(text.length, lengthBits(version))
  for (let at = 0; at < text.length; at += 2) {
    const [one = '', other] = text.slice(at, at + 2)
    if (other === undefined) put(ALPHABET.indexOf(one), 6)
    else put(ALPHABET.indexOf(one) * 45 + ALPHABET.indexOf(other), 11)
  }
  if (bits.length > bytes * 8) return undefined
  put(0, Math.min(4, bytes * 8 - bits.length))
  while (bits.length % 8 !== 0) bits.push(0)
  const data = Array.from({ length: bits.length / 8 }, (_, at) => Number.parseInt(bits.slice(at * 8, at * 8 + 8).join(''), 2))
  for (let pad = 0xec; data.length < bytes; pad ^= 0xec ^ 0x11) data.push(pad)
  return data
}

/** Splits the data into blocks, the short ones first, and interleaves them with their error correction. */
function withErrorCorrection(data: number[], version: number): number[] {
  const [count, ecc, total] = [blocks(version), eccBytes(version), capacity(version)]
  const shortLength = Math.floor(total / count) - ecc
  const shortCount = count - (total % count)
  const divisor = divisorOf(ecc)
  const parts: { data: number[]; rest: number[] }[] = []
  for (let at = 0; parts.length < count; ) {
    const part = data.slice(at, at + shortLength + (parts.length < shortCount ? 0 : 1))
    at += part.length
    parts.push({ data: part, rest: remainderOf(part, divisor) })
  }
  const across = (length: number, pick: (part: (typeof parts)[number], at: number) => number | undefined): number[] =>
    Array.from({ length }, (_, at) => parts.map((part) => pick(part, at)).filter((byte) => byte !== undefined)).flat()
  return [...across(shortLength + 1, (part, at) => part.data[at]), ...across(ecc, (part, at) => part.rest[at])]
}

/** In GF(2^8) modulo 0x11d. */
function multiply(one: number, other: number): number {
  let product = 0
  for (let bit = 7; bit >= 0; bit--) product = (product << 1) ^ ((product >> 7) * 0x11d) ^ (((other >> bit) & 1) * one)
  return product
}

function divisorOf(degree: number): number[] {
  const result = [...Array<number>(degree - 1).fill(0), 1]
  for (let root = 1, at = 0; at < degree; at++, root = multiply(root, 2))
    for (let place = 0; place < degree; place++) result[place] = multiply(result[place] ?? 0, root) ^ (result[place + 1] ?? 0)
  return result
}

function remainderOf(data: number[], divisor: number[]): number[] {
  const result = divisor.map(() => 0)
  for (const byte of data) {
    const factor = byte ^ (result.shift() ?? 0)
    result.push(0)
    for (const [at, coefficient] of divisor.entries()) result[at] = (result[at] ?? 0) ^ multiply(coefficient, factor)
  }
  return result
}

/** The value with its check bits. */
function bch(value: number, bits: number, polynomial: number): number {
  let rest = value
  for (let at = 0; at < bits; at++) rest = (rest << 1) ^ ((rest >> (bits - 1)) * polynomial)
  return (value << bits) | rest
}

class Drawing {
  readonly #version: number
  readonly #size: number
  readonly #dark: boolean[][]
  /** Modules that do not carry data. */
  readonly #fixed: boolean[][]

  constructor(version: number) {
    this.#version = version
    this.#size = version * 4 + 17
    const empty = (): boolean[][] => Array.from({ length: this.#size }, () => Array<boolean>(this.#size).fill(false))
    this.#dark = empty()
    this.#fixed = empty()
  }

  draw(bytes: number[]): boolean[][] {
    const size = this.#size
    for (let at = 0; at < size; at++) {
      this.#set(6, at, at % 2 === 0)
      this.#set(at, 6, at % 2 === 0)
    }
    const ends = [3, size - 4]
    for (const x of ends) for (const y of ends) if (x === 3 || y === 3) this.#square(x, y, 4, (ring) => ring !== 2 && ring !== 4)
    const centers = this.#alignmentCenters()
    for (const [column, x] of centers.entries())
      for (const [row, y] of centers.entries()) {
        const last = centers.length - 1
        const isFinder = (column === 0 && row === 0) || (column === 0 && row === last) || (column === last && row === 0)
        if (!isFinder) this.#square(x, y, 2, (ring) => ring !== 1)
      }
    this.#drawFormat()
    this.#drawVersion()
    this.#drawBytes(bytes)
    return this.#dark
  }

  #set(x: number, y: number, isDark: boolean): void {
    const [row, fixed] = [this.#dark[y], this.#fixed[y]]
    if (!row || !fixed || x < 0 || x >= this.#size) return
    row[x] = isDark
    fixed[x] = true
  }

  #square(x: number, y: number, radius: number, isDark: (ring: number) => boolean): void {
    for (let dx = -radius; dx <= radius; dx++)
      for (let dy = -radius; dy <= radius; dy++) this.#set(x + dx, y + dy, isDark(Math.max(Math.abs(dx), Math.abs(dy))))
  }

  #alignmentCenters(): number[] {
    const count = alignments(this.#version)
    if (count === 0) return []
    const step = Math.floor((this.#version * 8 + count * 3 + 5) / (count * 4 - 4)) * 2
    const others = Array.from({ length: count - 1 }, (_, at) => this.#size - 7 - at * step)
    return [6, ...others.reverse()]
  }

  #drawFormat(): void {
    const bit = (at: number): boolean => ((FORMAT >> at) & 1) === 1
    const size = this.#size
    for (let at = 0; at < 6; at++) this.#set(8, at, bit(at))
    this.#set(8, 7, bit(6))
    this.#set(8, 8, bit(7))
    this.#set(7, 8, bit(8))
    for (let at = 9; at < 15; at++) this.#set(14 - at, 8, bit(at))
    for (let at = 0; at < 8; at++) this.#set(size - 1 - at, 8, bit(at))
    for (let at = 8; at < 15; at++) this.#set(8, size - 15 + at, bit(at))
    this.#set(8, size - 8, true)
  }

  #drawVersion(): void {
    if (this.#version < 7) return
    const bits = bch(this.#version, 12, 0x1f25)
    for (let at = 0; at < 18; at++) {
      const [far, near] = [this.#size - 11 + (at % 3), Math.floor(at / 3)]
      this.#set(far, near, ((bits >> at) & 1) === 1)
      this.#set(near, far, ((bits >> at) & 1) === 1)
    }
  }

  /** In pairs of columns from the right, up and down in turn, around the column with the timing pattern. */
  #drawBytes(bytes: number[]): void {
    let at = 0
    for (let right = this.#size - 1; right >= 1; right -= right === 8 ? 3 : 2)
      for (let step = 0; step < this.#size; step++) {
        const y = ((right + 1) & 2) === 0 ? this.#size - 1 - step : step
        for (const x of [right, right - 1]) {
          if (this.#fixed[y]?.[x]) continue
          const bit = ((bytes[at >> 3] ?? 0) >> (7 - (at & 7))) & 1
          at++
          const row = this.#dark[y]
          if (row) row[x] = (bit === 1) !== ((x + y) % 2 === 0)
        }
      }
  }
}
