/**
 * The cryptography that codecs need, handed in: the server has node:crypto, which no browser has. A text stands for its UTF-8 bytes.
 */
export type Primitives = {
  sha256: (data: Uint8Array) => Uint8Array
  hmacSha256: (key: Uint8Array | string, data: Uint8Array | string) => Uint8Array
  /** Takes as long for a wrong value as for the right one. False where the lengths differ: a length is no secret. */
  isEqual: (one: Uint8Array | string, other: Uint8Array | string) => boolean
}
