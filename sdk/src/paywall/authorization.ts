/** Elements of a header's list: what is between commas that are in no quotes. A quote that never ends takes the rest with it. */
const ELEMENTS = /(?:[^",]|"(?:[^"\\]|\\.)*"?)+/g
const PAYMENT_SCHEME = /^(?:Payment|L402|LSAT) /i

/**
 * The payment credential among whatever else is in an Authorization header; undefined when there is none. A customer may have to sign in
 * as well: `Bearer …` is somebody's pass, not a bad payment, and `Digest nc="Payment x"` must not be read as one.
 */
export function credentialIn(authorization: string | null | undefined): string | undefined {
  // Almost every header is one credential and nothing else.
  if (authorization && PAYMENT_SCHEME.test(authorization) && !authorization.includes(',')) return authorization.trim()
  const elements = authorization?.match(ELEMENTS) ?? []
  return elements.map((element) => element.trim()).find((element) => PAYMENT_SCHEME.test(element))
}
