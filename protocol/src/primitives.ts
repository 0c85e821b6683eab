/**
 * The cryptographic functions the codecs need. Injected, because browsers have no node:crypto. Strings stand for their UTF-8 bytes.
 */
export type Primitives = {
  sha256: (data: Uint8Array) => Uint8Array
  hmacSha256: (key: Uint8Array | string, data: Uint8Array | string) => Uint8Array
  /** Constant-time comparison. Returns false at once if the lengths differ, because a length is not secret. */
  isEqual: (one: Uint8Array | string, other: Uint8Array | string) => boolean
}
