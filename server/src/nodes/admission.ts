import type { Config } from '../config.ts'
import { Problem } from '../problems.ts'
import { missingCredit } from '../store/credit/credit.ts'
import type { Sql } from '../store/db.ts'
import { countNodes, lockCreations } from '../store/nodes/creation.ts'

/** Decides whether an account may have another node, in the transaction that creates it. Concurrent creations wait for each other. */

export type AdmissionLimits = Pick<Config, 'maxNodesPerAccount' | 'maxNodes' | 'nodePriceSatPerDay'>

export async function admitNode(sql: Sql, limits: AdmissionLimits, accountId: string, host: string): Promise<void> {
  const { maxNodesPerAccount, maxNodes, nodePriceSatPerDay } = limits
  await lockCreations(sql, accountId, host)
  const { ofAccount, onHost, isNewcomer } = await countNodes(sql, accountId, host)
  if (ofAccount >= maxNodesPerAccount)
    throw new Problem('limit_reached', `An account can have at most ${maxNodesPerAccount} nodes. Delete one first.`)
  if (onHost >= maxNodes) throw new Problem('limit_reached', 'This host has reached its node limit. Ask the operator.')
  if (isNewcomer && onHost >= newcomersShare(maxNodes))
    throw new Problem(
      'limit_reached',
      'The remaining capacity of this host is reserved for accounts that have bought credit. Ask the operator.',
    )
  await requireCredit(sql, nodePriceSatPerDay, accountId, 1)
}

/**
 * A quarter of the host is reserved, so that however many strangers sign up, there is room for accounts that pay, or that the
 * operator created, invited or gave credit to.
 */
const newcomersShare = (maxNodes: number): number => Math.max(1, Math.floor(maxNodes * 0.75))

/** Requires credit for one day of the nodes that are charged now, plus `more`. */
export async function requireCredit(sql: Sql, priceSatPerDay: number, accountId: string, more: number): Promise<void> {
  const { missingMsat, nodes } = await missingCredit(sql, accountId, priceSatPerDay * 1000, more)
  if (missingMsat > 0) throw new NoCredit(priceSatPerDay, nodes, missingMsat)
}

export class NoCredit extends Problem {
  readonly missingMsat: number

  /** `nodes`: those that are charged now, and this one. */
  constructor(priceSatPerDay: number, nodes: number, missingMsat: number) {
    super(
      'insufficient_credit',
      nodes === 1
        ? `The account’s credit does not cover one node for one day (${priceSatPerDay} sat).`
        : `The account’s credit does not cover ${nodes} nodes for one day (${priceSatPerDay} sat each): this one and those already running.`,
    )
    this.missingMsat = missingMsat
  }
}
