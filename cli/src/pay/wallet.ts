import type { PurchaseError } from '../../../sdk/src/buy/errors.ts'
import { PhoenixdWallet } from '../../../sdk/src/buy/wallets/phoenixd.ts'
import type { Call } from '../call.ts'
import { type ExitName, Failure, usage } from '../failure.ts'
import { objectIn, readSecretOrInput } from '../files.ts'

/** The file contains only the password, or is the file written by `nodes create --credentials-file`. */
export async function openWallet(call: Call): Promise<PhoenixdWallet> {
  const path = call.text('password-file')
  if (path === undefined) throw usage('The server asks for payment, but --password-file is missing.', 'boltyard pay --help')
  const text = await readSecretOrInput(path, 'the node’s password', call.signal)
  const { password = text, endpointUrl } = objectIn(text) ?? {}
  const url = call.text('node-url') ?? endpointUrl
  if (typeof password !== 'string' || !/^[\x21-\x7e]+$/.test(password))
    throw usage('The password file does not contain a password.')
  if (typeof url !== 'string')
    throw usage('--node-url is missing. It is the endpointUrl of the paying node.', 'boltyard nodes list')
  try {
    return new PhoenixdWallet({ url, password })
  } catch {
    throw usage('--node-url must look like https://boltyard.example/n/node_….')
  }
}

/** The exit code, the error code if it differs from the SDK's, and what to do next. */
const KNOWN: Partial<Record<PurchaseError['code'], [exit: ExitName, code?: string, next?: string]>> = {
  wallet_unreachable: ['network', 'node_unreachable', 'Check --node-url, and that the node is ready.'],
  wallet_password: ['key', 'node_password', 'Use the full password. The restricted one cannot send payments.'],
  payment_unknown: ['network'],
}

/** Turns an error of the SDK's buyer into one of this command line. */
export function explainPurchase(error: PurchaseError): Failure {
  const [exit, code = error.code, next] = KNOWN[error.code] ?? ['other']
  const { paymentHash } = error.details
  const message = error.outcome === 'unpaid' ? `${error.reason} This run paid nothing.` : error.reason
  const lookUp = error.code === 'wrong_preimage' ? [`Look up the payment ${paymentHash} on the node.`] : []
  return new Failure(exit, code, message, { next: [...(next === undefined ? [] : [next]), ...lookUp], cause: error })
}
