import { pbkdf2Sync } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { HDKey } from '@scure/bip32'
import { generateMnemonic, validateMnemonic } from '@scure/bip39'
import { wordlist } from '@scure/bip39/wordlists/english.js'
import { reasonOf, StartFault } from './start-fault.ts'

export type NodeKeys = { nodeId: string; privateKey: Uint8Array }

/** lightning-kmp's path for every chain that is not mainnet. */
const NODE_KEY_PATH = "m/48'/0'"

/** BIP 39 with an empty passphrase; the words are not checked here, because phoenixd does not check those given by --seed. */
export function nodeKeysOf(words: string): NodeKeys {
  const seed = pbkdf2Sync(words.normalize('NFKD'), 'mnemonic', 2048, 64, 'sha512')
  return nodeKeysOfSeed(seed)
}

export function nodeKeysOfSeed(seed: Uint8Array): NodeKeys {
  const { publicKey, privateKey } = HDKey.fromMasterSeed(seed).derive(NODE_KEY_PATH)
  if (!publicKey || !privateKey) throw new Error('no key at that path')
  return { nodeId: Buffer.from(publicKey).toString('hex'), privateKey }
}

/** The words in the file, or undefined when there is none yet. Whatever stands between the words is ignored, as phoenixd does. */
export function readSeedFile(path: string): string | undefined {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw new StartFault(`cannot read the seed file ${path}: ${reasonOf(error)}`)
  }
  const words = (text.match(/[a-z]+/g) ?? []).join(' ')
  if (!validateMnemonic(words, wordlist)) throw new StartFault(`the seed file ${path} does not hold valid BIP39 words`)
  return words
}

/** "wx": a seed that appeared meanwhile is never overwritten. */
export function createSeedFile(path: string): string {
  const words = generateMnemonic(wordlist, 128)
  try {
    writeFileSync(path, words, { mode: 0o600, flag: 'wx', flush: true })
  } catch (error) {
    throw new StartFault(`cannot write the seed file ${path}: ${reasonOf(error)}`)
  }
  return words
}
