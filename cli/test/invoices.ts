import bolt11 from 'bolt11'

export const nowSeconds = Math.floor(Date.now() / 1000)

export function invoiceOf(
  paymentHash: string,
  sat: number | undefined,
  { timestamp = nowSeconds, prefix = 'bc' }: { timestamp?: number; prefix?: string } = {},
): string {
  const tags = [
    { tagName: 'payment_hash', data: paymentHash },
    { tagName: 'description', data: 'x' },
    { tagName: 'expire_time', data: 3_600 },
  ]
  const network = { bech32: prefix, pubKeyHash: 0, scriptHash: 5, validWitnessVersions: [0] }
  const price = sat === undefined ? {} : { millisatoshis: String(sat * 1000) }
  return bolt11.sign(bolt11.encode({ network, timestamp, tags, ...price } as any, false), 'e1'.repeat(32)).paymentRequest ?? ''
}
