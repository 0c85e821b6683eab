import { createECDH, createHmac, pbkdf2Sync } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { generateMnemonic, validateMnemonic } from '@scure/bip39'
import { wordlist } from '@scure/bip39/wordlists/english.js'
import { UsageError } from './options.ts'
import { reasonOf, StartFault } from './start-fault.ts'

export type NodeKeys = { nodeId: string; privateKey: Uint8Array }

/** lightning-kmp's derivation path for all chains except mainnet. */
const NODE_KEY_PATH = [48, 0]
const HARDENED = 0x80000000
const CURVE_ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n

/** BIP 39 with an empty passphrase. The words are not checked here, because phoenixd does not check those passed with --seed. */
export function nodeKeysOf(words: string): NodeKeys {
  const seed = pbkdf2Sync(words.normalize('NFKD'), 'mnemonic', 2048, 64, 'sha512')
  return nodeKeysOfSeed(seed)
}

/** BIP 32 with hardened steps only. They need no public keys, which would take long to compute in JavaScript. */
export function nodeKeysOfSeed(seed: Uint8Array): NodeKeys {
  let node = hmac('Bitcoin seed', seed)
  for (const step of NODE_KEY_PATH) {
    const index = Buffer.alloc(4)
    index.writeUInt32BE(HARDENED + step)
    const parentKey = node.subarray(0, 32)
    const child = hmac(node.subarray(32), Buffer.concat([Buffer.of(0), parentKey, index]))
    const key = (numberOf(child.subarray(0, 32)) + numberOf(parentKey)) % CURVE_ORDER
    node = Buffer.concat([Buffer.from(key.toString(16).padStart(64, '0'), 'hex'), child.subarray(32)])
  }
  const privateKey = node.subarray(0, 32)
  const curve = createECDH('secp256k1')
  curve.setPrivateKey(privateKey)
  return { nodeId: curve.getPublicKey('hex', 'compressed'), privateKey }
}

const hmac = (key: string | Buffer, data: Uint8Array): Buffer => createHmac('sha512', key).update(data).digest()
const numberOf = (bytes: Buffer): bigint => BigInt(`0x${bytes.toString('hex')}`)

/** The words in the file, or undefined if it does not exist yet. Anything between the words is ignored, as in phoenixd. */
export function readSeedFile(path: string): string | undefined {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw new StartFault(`cannot read the seed file ${path}: ${reasonOf(error)}`)
  }
  const words = (text.match(/[a-z]+/g) ?? []).join(' ')
  const wrong = whatIsWrong(words)
  if (wrong) throw new UsageError(wrong)
  return words
}

/** phoenixd also names the invalid word. We do not, because it may be a mistyped seed word, and errors end up in logs. */
function whatIsWrong(words: string): string | undefined {
  const list = words.split(' ').filter((word) => word !== '')
  if (list.length === 0) return 'mnemonic code cannot be empty'
  if (list.length % 3 !== 0) return `invalid mnemonic word count ${list.length}, it must be a multiple of 3`
  if (!list.every((word) => wordlist.includes(word))) return 'invalid mnemonic word'
  return validateMnemonic(words, wordlist) ? undefined : 'invalid checksum'
}

/** "wx": never overwrites a seed that was created in the meantime. */
export function createSeedFile(path: string): string {
  const words = generateMnemonic(wordlist, 128)
  try {
    writeFileSync(path, words, { mode: 0o600, flag: 'wx', flush: true })
  } catch (error) {
    throw new StartFault(`cannot write the seed file ${path}: ${reasonOf(error)}`)
  }
  return words
}
