import { readInvoice } from '../../../protocol/src/bolt11.ts'
import { isId } from '../platform/ids.ts'
import { isLoopback } from '../platform/loopback.ts'
import { noSuchNode, Problem } from '../problems.ts'
import { isTopUp } from '../store/credit/top-ups.ts'
import type { Sql } from '../store/db.ts'
import { recordFunding } from '../store/nodes/funds.ts'
import { findAnyNode, findNode } from '../store/nodes/nodes.ts'
import type { Hub } from './hub.ts'

export type SandboxDeps = { sql: Sql; hub: Hub; publicUrl: string }

/** Play money, a customer's wallet, and faults on demand. */
export class Sandbox {
  readonly #deps: SandboxDeps

  constructor(deps: SandboxDeps) {
    this.#deps = deps
  }

  /** Without `accountId`, the caller is the operator, who can fund any node. */
  async fund(nodeId: string, amountSat: number, accountId?: string): Promise<{ balanceSat: number }> {
    const { sql, hub } = this.#deps
    const answer = await hub.fund(await this.#lightningId(nodeId, accountId), amountSat)
    // Recorded now, because the node might be deleted before it is observed again.
    await recordFunding(sql, nodeId)
    return answer
  }

  async fault(nodeId: string, fault: string): Promise<void> {
    await this.#deps.hub.fault(await this.#lightningId(nodeId, undefined), fault)
  }

  /** For the operator. */
  pay(invoice: string): Promise<{ paymentHash: string; preimage: string }> {
    return this.#deps.hub.pay(invoice, 'operator')
  }

  /** The wallet has unlimited play money. Where others can sign up, buying credit with it would make credit free. */
  async payFromTestWallet(accountId: string, serialized: string): Promise<{ paymentHash: string; preimage: string }> {
    const { sql, hub, publicUrl } = this.#deps
    if (!isLoopback(new URL(publicUrl).hostname)) {
      const invoice = readInvoice(serialized)
      if (!invoice) throw new Problem('bad_request', 'The field "invoice" must be a BOLT 11 invoice.')
      if (await isTopUp(sql, Buffer.from(invoice.paymentHash, 'hex')))
        throw new Problem('bad_request', 'The test wallet cannot buy credit. Pay this invoice from a Lightning node.')
    }
    return hub.pay(serialized, accountId)
  }

  async #lightningId(nodeId: string, accountId: string | undefined): Promise<string> {
    const { sql } = this.#deps
    // An invalid id matches nothing, and may contain bytes that PostgreSQL rejects.
    if (!isId('node', nodeId)) throw noSuchNode()
    const node = await (accountId === undefined ? findAnyNode(sql, nodeId) : findNode(sql, accountId, nodeId))
    if (!node || node.deletedAt !== null) throw noSuchNode()
    return node.lightningId
  }
}
