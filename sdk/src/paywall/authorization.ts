/** The elements of a header list: text between commas outside quotes. An unterminated quote takes the rest. */
const ELEMENTS = /(?:[^",]|"(?:[^"\\]|\\.)*"?)+/g
const PAYMENT_SCHEME = /^(?:Payment|L402|LSAT) /i

/**
 * The payment credential in an Authorization header, or undefined. The header may also contain other credentials: `Bearer …` is a login,
 * not an invalid payment, and `Digest nc="Payment x"` must not be read as a payment.
 */
export function credentialIn(authorization: string | null | undefined): string | undefined {
  // Fast path: almost every header is a single credential.
  if (authorization && PAYMENT_SCHEME.test(authorization) && !authorization.includes(',')) return authorization.trim()
  const elements = authorization?.match(ELEMENTS) ?? []
  return elements.map((element) => element.trim()).find((element) => PAYMENT_SCHEME.test(element))
}
