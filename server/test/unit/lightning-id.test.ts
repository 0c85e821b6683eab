import { HDKey } from '@scure/bip32'
import { generateMnemonic, mnemonicToSeedSync } from '@scure/bip39'
import { wordlist } from '@scure/bip39/wordlists/english.js'
import { expect, test } from 'vitest'
import { lightningIdOf } from '../../src/nodes/lightning-id.ts'

const derived = (mnemonic: string, path: string): string =>
  Buffer.from(HDKey.fromMasterSeed(mnemonicToSeedSync(mnemonic)).derive(path).publicKey ?? []).toString('hex')

test('C18: the id is the public key at phoenixd’s path, as another implementation of BIP 32 and BIP 39 derives it', () => {
  for (let round = 0; round < 3; round++) {
    const mnemonic = generateMnemonic(wordlist, 128)
    expect(lightningIdOf(mnemonic, 'mainnet')).toBe(derived(mnemonic, "m/50'/0'"))
    for (const network of ['testnet', 'regtest'] as const)
      expect(lightningIdOf(mnemonic, network)).toBe(derived(mnemonic, "m/48'/0'"))
  }
})
