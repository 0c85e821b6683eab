import { createHash } from 'node:crypto'
import { decode as readWithBolt11 } from 'bolt11'
import fc from 'fast-check'
import { decode as readWithLightBolt11 } from 'light-bolt11-decoder'
import { beforeAll, expect } from 'vitest'
import { type Answer, TestNode } from '../harness.ts'

/** A node that creates invoices, and third-party decoders to check them. */

export const MAX_AMOUNT_SAT = 9_007_199_254_740
export const CHARSET = 'qpzry9x8gf2tvdw0s3jn54khce6mua7l'

export const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')

type Hop = {
  pubkey: string
  short_channel_id: string
  fee_base_msat: number
  fee_proportional_millionths: number
  cltv_expiry_delta: number
}
type Reading = {
  amountMsat: string | null
  timestamp: number
  nodeId: string
  paymentHash: string
  paymentSecret: string
  description: string | undefined
  descriptionHash: string | undefined
  expirySeconds: number
  minFinalCltvExpiry: number
  metadata: string
  hops: Hop[][]
  /** The numbers of the set feature bits. */
  features: number[]
  /** The tag letters in order. */
  tags: string
}

/** Reads an invoice with two third-party decoders. Where both support a field, they must agree. */
export function readIndependently(serialized: string): Reading {
  const one: any = readWithBolt11(serialized)
  const other: any = readWithLightBolt11(serialized)
  const section = (name: string): any => other.sections.find((found: any) => found.name === name)?.value
  const reading = {
    amountMsat: one.millisatoshis,
    timestamp: one.timestamp,
    paymentHash: one.tagsObject.payment_hash,
    paymentSecret: one.tagsObject.payment_secret,
    description: one.tagsObject.description,
    descriptionHash: one.tagsObject.purpose_commit_hash,
    expirySeconds: one.tagsObject.expire_time,
    minFinalCltvExpiry: one.tagsObject.min_final_cltv_expiry,
    hops: one.tags.filter((tag: any) => tag.tagName === 'routing_info').map((tag: any) => tag.data),
  }
  expect({
    amountMsat: section('amount') ?? null,
    timestamp: section('timestamp'),
    paymentHash: section('payment_hash'),
    paymentSecret: section('payment_secret'),
    description: section('description'),
    descriptionHash: section('description_hash'),
    expirySeconds: section('expiry'),
    minFinalCltvExpiry: section('min_final_cltv_expiry'),
    hops: other.route_hints,
    // light-bolt11-decoder drops a leading byte order mark.
  }).toEqual({ ...reading, description: reading.description?.replace(/^\uFEFF/, '') })
  const featureWords = [...other.sections.find((found: any) => found.name === 'feature_bits').letters.slice(3)]
  const features = featureWords
    .reverse()
    .flatMap((letter, index) =>
      [0, 1, 2, 3, 4].filter((bit) => CHARSET.indexOf(letter) & (1 << bit)).map((bit) => index * 5 + bit),
    )
  return {
    ...reading,
    nodeId: one.payeeNodeKey,
    metadata: section('metadata'),
    features,
    tags: other.sections.flatMap((found: any) => found.tag ?? []).join(''),
  }
}

/** Any text a form can contain, 0 to 128 UTF-16 units, without unpaired surrogates. */
export const descriptions = fc
  .array(
    fc.oneof(
      fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
      fc.string({ unit: 'grapheme', minLength: 1, maxLength: 1 }),
      fc.constantFrom(
        'a',
        ' ',
        '&',
        '+',
        '=',
        '%',
        '"',
        '\\',
        '\n',
        '\r\n',
        '\0',
        'é',
        '漢',
        '😀',
        '👩‍👩‍👧‍👦',
        '🇺🇦',
        '𝔘',
        '\u202e',
      ),
    ),
    { maxLength: 128, size: 'max' },
  )
  .map((pieces) => {
    let text = ''
    for (const piece of pieces) if (text.length + piece.length <= 128) text += piece
    return text
  })

export const bytes32 = fc.uint8Array({ minLength: 32, maxLength: 32 })

export let node: TestNode
beforeAll(async () => {
  node = await new TestNode().start()
})

export const create = (form: Record<string, string | number>): Promise<Answer> => node.post('/createinvoice', form)
export async function created(
  form: Record<string, string | number>,
): Promise<{ amountSat?: number; paymentHash: string; serialized: string }> {
  const answer = await create(form)
  expect([answer.status, answer.status === 200 ? '' : answer.text]).toEqual([200, ''])
  return answer.json()
}
export const invoicesOf = async (): Promise<any[]> => (await node.get('/payments/incoming?all=true&limit=-1')).json()
