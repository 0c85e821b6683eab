import { type CustomWallet, customWallet, type PayFunction } from './function-wallet.ts'
import { type NwcOptions, NwcWallet } from './nwc.ts'
import { PhoenixdWallet } from './phoenixd.ts'
import type { Wallet } from './wallet.ts'

/**
 * phoenixd (`url`), a Boltyard node (`endpointUrl`), each with its full password; a wallet behind Nostr Wallet Connect
 * (`nostr+walletconnect://…`); or a function that pays an invoice, alone or with one that looks payments up.
 */
export type WalletOptions =
  | { url: string; password: string }
  | { endpointUrl: string; password: string }
  | string
  | NwcOptions
  | PayFunction
  | CustomWallet

export function openWallet(options: WalletOptions): Wallet {
  if (typeof options === 'function') return customWallet({ pay: options })
  if (typeof options === 'string') return new NwcWallet({ nwc: options })
  if ('nwc' in options) return new NwcWallet(options)
  if ('pay' in options) return customWallet(options)
  if ('endpointUrl' in options) return new PhoenixdWallet({ url: options.endpointUrl, password: options.password })
  return new PhoenixdWallet(options)
}
