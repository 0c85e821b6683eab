import { hkdfSync } from 'node:crypto'
import { derivedKey, type MasterKey, open, seal } from '../platform/secrets.ts'
import { Problem } from '../problems.ts'
import type { Sql } from '../store/db.ts'
import { findProtocolKey, keepProtocolKey, protocolKeysUnder, replaceProtocolKey } from '../store/protocol-keys.ts'

/** Signs challenges. There is one for every master key ever used, and each payment records which one signed it. */
export type ProtocolKey = { id: string; mpp: Buffer; rootKeyOf: (paymentId: string) => Buffer }

const PURPOSE = 'protocol keys'

function protocolKeyOf(id: string, secret: Buffer): ProtocolKey {
  const derive = (salt: string, use: string): Buffer => Buffer.from(hkdfSync('sha256', secret, salt, `boltyard ${use}`, 32))
  return { id, mpp: derive('', 'mpp challenge id'), rootKeyOf: (paymentId) => derive(paymentId, 'l402 root key') }
}

export class ProtocolKeys {
  readonly #sql: Sql
  readonly #masters: MasterKey[]
  readonly #known: Map<string, ProtocolKey>
  readonly current: ProtocolKey

  private constructor(sql: Sql, masters: MasterKey[], current: ProtocolKey) {
    this.#sql = sql
    this.#masters = masters
    this.#known = new Map([[current.id, current]])
    this.current = current
  }

  static async open(sql: Sql, master: MasterKey, previous: MasterKey | undefined): Promise<ProtocolKeys> {
    const secret = derivedKey(master, 'protocol key')
    await keepProtocolKey(sql, { id: master.id, keyId: master.id, sealed: seal(derivedKey(master, PURPOSE), master.id, secret) })
    return new ProtocolKeys(sql, previous ? [master, previous] : [master], protocolKeyOf(master.id, secret))
  }

  async find(id: string): Promise<ProtocolKey> {
    const known = this.#known.get(id)
    if (known) return known
    const row = await findProtocolKey(this.#sql, id)
    const master = this.#masters.find((one) => one.id === row?.keyId)
    // Another replica already has a newer master key. This process will be replaced soon.
    if (!row || !master)
      throw new Problem('service_unavailable', 'The key for this payment is not available yet. Try again shortly.', {
        headers: { 'retry-after': '5' },
      })
    const key = protocolKeyOf(id, open(derivedKey(master, PURPOSE), id, Buffer.from(row.sealed)))
    this.#known.set(id, key)
    return key
  }
}

export async function resealProtocolKeys(sql: Sql, master: MasterKey, previous: MasterKey): Promise<number> {
  const rows = await protocolKeysUnder(sql, previous.id)
  for (const { id, sealed } of rows) {
    const secret = open(derivedKey(previous, PURPOSE), id, Buffer.from(sealed))
    await replaceProtocolKey(sql, previous.id, { id, keyId: master.id, sealed: seal(derivedKey(master, PURPOSE), id, secret) })
  }
  return rows.length
}
