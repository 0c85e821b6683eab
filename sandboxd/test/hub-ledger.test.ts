import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { HubLedger, type HubRecord } from '../src/hub/ledger.ts'

const hash = (text: string): string => createHash('sha256').update(text).digest('hex')
const step = fc.record({
  kind: fc.constantFrom('node', 'grant', 'granted', 'ungranted', 'paying', 'paid', 'unpaid'),
  choice: fc.nat(),
  amountSat: fc.integer({ min: 1, max: 1_000_000 }),
  payer: fc.constantFrom(undefined, 'ann', 'bob'),
})

/** The records a hub would write for these steps: a grant or payment ends once, and an invoice is paid once. */
function recordsOf(steps: (typeof step extends fc.Arbitrary<infer T> ? T : never)[]): HubRecord[] {
  const grants: string[] = []
  const payments: string[] = []
  const take = (list: string[], choice: number): string | undefined => list.splice(choice % Math.max(1, list.length), 1)[0]
  return steps.flatMap(({ kind, choice, amountSat, payer }, index): HubRecord[] => {
    const nodeId = `02${hash(`node ${choice % 3}`)}`
    if (kind === 'node')
      return [{ t: 'node', nodeId, host: '127.0.0.1', port: 1 + (choice % 65_535), token: hash(`token ${index}`) }]
    if (kind === 'grant') {
      grants.push(`grant-${index}`)
      return [{ t: 'grant', fundId: `grant-${index}`, nodeId, amountSat }]
    }
    if (kind === 'granted' || kind === 'ungranted') {
      const fundId = take(grants, choice)
      return fundId === undefined ? [] : [{ t: kind, fundId }]
    }
    if (kind === 'paying') {
      const paymentId = `payment-${index}`
      payments.push(paymentId)
      const secrets = { paymentHash: hash(paymentId), paymentSecret: hash(`secret of ${paymentId}`) }
      return [{ t: 'paying', paymentId, recipient: nodeId, ...secrets, amountMsat: amountSat * 1000, ...(payer && { payer }) }]
    }
    const paymentId = take(payments, choice)
    if (paymentId === undefined) return []
    return [kind === 'paid' ? { t: 'paid', paymentId, preimage: hash(`preimage of ${paymentId}`) } : { t: 'unpaid', paymentId }]
  })
}

function replayed(records: HubRecord[]): HubLedger {
  const ledger = new HubLedger()
  for (const record of JSON.parse(JSON.stringify(records)) as HubRecord[]) ledger.apply(record)
  return ledger
}

test('the compact form of any history of the hub keeps its totals, nodes, results and what is pending', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), fc.nat(60), (steps, at) => {
      const records = recordsOf(steps)
      const compacted = replayed([...replayed(records.slice(0, at)).compact(), ...records.slice(at)])
      expect({ ...compacted }).toEqual({ ...replayed(records) })
      expect({ ...replayed(compacted.compact()) }).toEqual({ ...compacted })
    }),
    { numRuns: 300 },
  )
})
