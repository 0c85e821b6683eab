import { toHex, utf8Of } from '../../../../protocol/src/bytes.ts'

/**
 * The cryptography of a buyer. Passed in, so that a program for Node, such as our command line client, does not have to bundle a
 * cryptography library.
 */
export type BuyerCrypto = {
  sha256: (data: Uint8Array) => Uint8Array
  /** Whether the text is a point on secp256k1, compressed, in lowercase hex. */
  isNodeKey: (nodeKey: string) => boolean
  /** Whether this node signed the invoice. */
  isSignedBy: (invoice: string, nodeKey: string) => boolean
}

export const NODE_KEY = /^0[23][0-9a-f]{64}$/

export const sha256Hex = ({ sha256 }: Pick<BuyerCrypto, 'sha256'>, data: Uint8Array | string): string =>
  toHex(sha256(typeof data === 'string' ? utf8Of(data) : data))
