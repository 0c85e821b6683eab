import { isReadable, READABLE, RULES } from '../../../contract/src/readable-text.ts'
import type { Config } from '../config.ts'
import { type Repeatable, runOnce } from '../idempotency.ts'
import { getInfo, hasFunds } from '../lightning/phoenixd/client.ts'
import { crashpoint } from '../platform/crashpoint.ts'
import { isId } from '../platform/ids.ts'
import type { MasterKey } from '../platform/secrets.ts'
import { sameVersion } from '../platform/versions.ts'
import { noSuchNode, Problem } from '../problems.ts'
import { logActivity } from '../store/activity.ts'
import { isOutOfGrace } from '../store/credit/credit.ts'
import type { Database } from '../store/db.ts'
import { recordFunds } from '../store/nodes/funds.ts'
import {
  countVersions,
  findAnyNode,
  listNodes,
  listPublicNodes,
  type NodeRow,
  type PublicNode,
  renameNode,
  type ShownNode,
} from '../store/nodes/nodes.ts'
import { undeleteNode } from '../store/nodes/operations.ts'
import { listPage } from '../store/operator/lists.ts'
import { type ListedNodeRow, listNodesOfAll, type NodeListParams } from '../store/operator/nodes.ts'
import type { AccessTo } from './access.ts'
import { admitNode, NoCredit, requireCredit } from './admission.ts'
import { type CreateNodeDeps, type CreateNodeParams, type Credentials, insertPrepared, prepareNode } from './create.ts'
import type { OperationKind, Status } from './node.ts'
import { type Check, inProgress, type OperationParams, Operations, requireState } from './operations.ts'
import { type Call, ownNode } from './own-node.ts'
import { TryAgain } from './runtime.ts'

/** What an owner can see of a node. The public API returns the first nine fields (C14). */
/** The fields of a node in `/v1`. */
export type PublicNodeView = {
  id: string
  name: string
  status: Status
  endpointUrl: string
  failureMessage: string | null
  updateStatus: 'updating' | 'updated' | 'failed' | null
  updateCompletedAt: number | null
  createdAt: number
  updatedAt: number
}
export type NodeView = PublicNodeView & {
  accessMode: 'limited' | 'full'
  autoLiquidity: string
  /** The operation in progress. */
  operation: OperationKind | null
  /** As of the last time the node's channels were online. */
  hasFunds: boolean
  updateAvailable: boolean
  /** The node is ready but did not respond to the last check. */
  isSilent: boolean
  /** The version it runs or ran last; null if it has never run. */
  version: string | null
  /** The last known balance, and when it was seen. */
  balanceSat: number | null
  balanceAt: number | null
  /** The node has received money since `balanceAt`. */
  isBalanceOutdated: boolean
  startedAt: number | null
}
type ForOperators =
  | 'accountId'
  | 'accountName'
  | 'version'
  | 'host'
  | 'phase'
  | 'deletedAt'
  | 'releasedAt'
  | 'isRestorable'
  | 'purgesAt'
export type OperatorNodeView = NodeView & Pick<ListedNodeRow, ForOperators>
export type CreateRequest = Pick<CreateNodeParams, 'name' | 'autoLiquidity' | 'accessMode'>

const MAX_NAME = 16
const FUNDS_TIMEOUT_MS = 5_000

export type NodesDeps = CreateNodeDeps & {
  /** Why no node can be updated here, in words for its owner. */
  whyNoUpdates: string | undefined
  sql: Database
  config: Config
  masterKeys: MasterKey[]
  accessTo: AccessTo
  /** An invoice for the missing credit; undefined if credit cannot be bought now. */
  offerTopUp: (accountId: string, missingMsat: number) => Promise<object | undefined>
  wake: () => void
  isStopping: () => boolean
}

/** Node operations of the API. Nothing is started inside a request: it records the desired state and wakes the reconciler. */
export class Nodes {
  readonly #deps: NodesDeps
  readonly #operations: Operations

  constructor(deps: NodesDeps) {
    this.#deps = deps
    this.#operations = new Operations(deps)
  }

  #publicView(row: PublicNode): PublicNodeView {
    const { config } = this.#deps
    const { id, name, status, failureMessage, updateStatus, updateCompletedAt, createdAt, updatedAt } = row
    const endpointUrl = config.nodeDomain
      ? `https://${id.slice('node_'.length)}.${config.nodeDomain}`
      : `${config.publicUrl}/n/${id}`
    return { id, name, status, endpointUrl, failureMessage, updateStatus, updateCompletedAt, createdAt, updatedAt }
  }

  #view(row: ShownNode): NodeView {
    const { accessMode, autoLiquidity, operation, hasFunds, isSilent } = row
    const { version, balanceSat, balanceAt, isBalanceOutdated, startedAt } = row
    return {
      ...this.#publicView(row),
      accessMode,
      autoLiquidity,
      operation,
      hasFunds,
      updateAvailable: this.#isUpdateAvailable(row),
      isSilent,
      version,
      balanceSat,
      balanceAt,
      isBalanceOutdated,
      startedAt: row.status === 'ready' ? startedAt : null,
    }
  }

  async create(call: Call, input: CreateRequest, repeatable: Repeatable): Promise<{ node: NodeView; credentials: Credentials }> {
    const name = input.name === undefined || input.name.trim() === '' ? undefined : checkedName(input.name)
    const { sql, config, masterKeys, host } = this.#deps
    const created = runOnce(sql, masterKeys, repeatable, 202, {
      prepare: async () => prepareNode(this.#deps, { ...input, ...call, name }),
      work: async (transaction, prepared) => {
        await admitNode(transaction, config, call.accountId, host)
        const row = await insertPrepared(transaction, prepared)
        crashpoint('create: not yet committed')
        return { node: this.#view(row), credentials: prepared.credentials }
      },
    })
    const answer = await this.#payable(call, created)
    crashpoint('create: committed')
    this.#deps.wake()
    return answer
  }

  /** If credit is insufficient, adds an invoice for the missing amount where possible. */
  async #payable<T>(call: Call, asked: Promise<T>): Promise<T> {
    try {
      return await asked
    } catch (error) {
      if (!(error instanceof NoCredit)) throw error
      const topUp = await this.#deps.offerTopUp(call.accountId, error.missingMsat)
      throw topUp ? new Problem('insufficient_credit', error.message, { details: { topUp } }) : error
    }
  }

  async list(call: Call): Promise<NodeView[]> {
    return (await listNodes(this.#deps.sql, call.accountId)).map((row) => this.#view(row))
  }

  /** An account may have thousands of nodes, so only what `/v1` shows is read. */
  async listPublic(call: Call): Promise<PublicNodeView[]> {
    return (await listPublicNodes(this.#deps.sql, call.accountId)).map((row) => this.#publicView(row))
  }

  /** For operators: nodes of all accounts, including deleted ones. */
  async listAll(params: NodeListParams): Promise<{ nodes: OperatorNodeView[]; nextCursor: string | null }> {
    const { sql, config } = this.#deps
    const rows = await listPage(params, 'node', (page) => listNodesOfAll(sql, page, config.retentionDays))
    const nodes = rows.items.map((row) => {
      const { accountId, accountName, version, host, phase, deletedAt, releasedAt, isRestorable, purgesAt } = row
      return { ...this.#view(row), accountId, accountName, version, host, phase, deletedAt, releasedAt, isRestorable, purgesAt }
    })
    return { nodes, nextCursor: rows.nextCursor }
  }

  /** How many nodes can be updated. */
  async countUpdates(accountId: string): Promise<number> {
    const rows = await countVersions(this.#deps.sql, accountId)
    return rows.filter((row) => this.#isUpdateAvailable(row)).reduce((sum, { count }) => sum + count, 0)
  }

  async get(call: Call, id: string): Promise<NodeView> {
    return this.#view(await ownNode(this.#deps.sql, call, id))
  }

  async rename(call: Call, id: string, text: string): Promise<NodeView> {
    const name = checkedName(text)
    const row = isId('node', id) && (await renameNode(this.#deps.sql, call.accountId, id, name, call.actor))
    if (!row) throw noSuchNode()
    return this.#view(row)
  }

  async start(call: Call, id: string): Promise<NodeView> {
    const { config } = this.#deps
    const timeoutMs = config.operationTimeoutMs
    const ask = { kind: 'start', from: ['stopped', 'failed'], state: 'running', newRun: false, timeoutMs } as const
    return this.#payable(
      call,
      // 0 more: inside this transaction, the node already counts as running.
      this.#complete(call, id, ask, (store) => requireCredit(store, config.nodePriceSatPerDay, call.accountId, 0)),
    )
  }

  async restart(call: Call, id: string): Promise<NodeView> {
    const timeoutMs = this.#deps.config.operationTimeoutMs
    return this.#complete(call, id, { kind: 'restart', from: ['ready'], state: 'running', newRun: true, timeoutMs })
  }

  async stop(call: Call, id: string): Promise<NodeView> {
    const timeoutMs = this.#deps.config.operationTimeoutMs
    return this.#complete(call, id, { kind: 'stop', from: ['ready', 'failed'], state: 'stopped', newRun: false, timeoutMs })
  }

  async #complete(call: Call, id: string, params: OperationParams, check?: Check): Promise<NodeView> {
    return this.#view(await this.#operations.complete(call, id, params, check))
  }

  /**
   * Stops a node whose account has been out of credit for too long, without waiting until it has stopped. Like any operation,
   * this is refused while another is in progress.
   */
  async stopForCredit(accountId: string, id: string): Promise<void> {
    const { config } = this.#deps
    const timeoutMs = config.operationTimeoutMs
    const ask = { kind: 'stop', from: ['ready', 'failed'], state: 'stopped', newRun: false, timeoutMs } as const
    await this.#operations.begin({ accountId, actor: 'credit' }, id, ask, async (store) => {
      const graceSeconds = config.creditGraceHours * 3_600
      // The account may have been topped up in the meantime.
      if (!(await isOutOfGrace(store, accountId, config.nodePriceSatPerDay * 1000, graceSeconds)))
        throw new Problem('invalid_node_state', 'The account has credit again.')
    })
  }

  async updates(
    call: Call,
    id: string,
  ): Promise<{ currentVersion: string; latestVersion: string; updateAvailable: boolean; lastUpdateError: string | null }> {
    const node = await ownNode(this.#deps.sql, call, id)
    const currentVersion = node.version ?? node.desiredVersion
    const latestVersion = this.#deps.versions.at(-1) ?? currentVersion
    return {
      currentVersion,
      latestVersion,
      updateAvailable: this.#isUpdateAvailable(node),
      lastUpdateError: node.lastUpdateError,
    }
  }

  #isUpdateAvailable({ version, desiredVersion }: Pick<ShownNode, 'version' | 'desiredVersion'>): boolean {
    const { whyNoUpdates, versions } = this.#deps
    return whyNoUpdates === undefined && this.#isNewer(versions.at(-1) ?? '', version ?? desiredVersion)
  }

  /** Newer means later in the catalog. A version that is not in the catalog is compared by its number. */
  #isNewer(version: string, than: string): boolean {
    const place = (wanted: string): number => this.#deps.versions.findIndex((one) => sameVersion(one, wanted))
    const [at, other] = [place(version), place(than)]
    return at >= 0 && other >= 0 ? at > other : version.localeCompare(than, 'en', { numeric: true }) > 0
  }

  async update(call: Call, id: string, wanted: string | undefined): Promise<NodeView> {
    const node = await ownNode(this.#deps.sql, call, id)
    const from: Status[] = ['ready', 'failed', 'stopped']
    requireState(node, 'update', from)
    const { whyNoUpdates, versions } = this.#deps
    if (whyNoUpdates !== undefined) throw new Problem('no_update_available', whyNoUpdates)
    const latest = versions.at(-1) ?? ''
    const version = wanted ?? latest
    const isInCatalog = versions.includes(version)
    const { version: lastRun } = node.history
    const isOld = lastRun !== null && this.#isNewer(lastRun, version)
    if (isOld || !isInCatalog || !this.#isNewer(version, node.version ?? node.desiredVersion)) {
      const why = !isInCatalog
        ? 'is not in the catalog'
        : isOld
          ? `is older than ${lastRun}, which has already used the node’s data`
          : 'is not newer than the node’s version'
      throw new Problem(
        'no_update_available',
        wanted === undefined
          ? 'There is no newer version available for this node.'
          : `The requested version ${why}. The latest version is ${latest}.`,
      )
    }
    const state = node.status === 'stopped' ? 'as it is' : 'running'
    const row = await this.#operations.begin(call, id, {
      kind: 'update',
      from,
      state,
      newRun: false,
      version,
      timeoutMs: this.#deps.config.provisionDeadlineMs,
    })
    return this.#view(row)
  }

  /** Returns once the deletion is durable. The node's process exits soon after; its data is kept for the retention period. */
  async delete(call: Call, id: string, force: boolean): Promise<void> {
    const node = await ownNode(this.#deps.sql, call, id)
    if (node.operation) throw inProgress(node.operation)
    const hasFundsNow = await this.#askFunds(node)
    // Record it: the channels may be offline at the next check.
    if (hasFundsNow !== undefined) await recordFunds(this.#deps.sql, id, hasFundsNow, node.nowMs)
    const from: Status[] = ['provisioning', 'ready', 'stopped', 'failed']
    await this.#operations.begin(call, id, {
      kind: 'delete',
      from,
      unlessFunded: !force,
      state: 'deleted',
      newRun: false,
      timeoutMs: this.#deps.config.operationTimeoutMs,
    })
  }

  /** Asks the node itself, because the last recorded observation may be minutes old. Undefined: the node does not say. */
  async #askFunds({ id, lightningId }: NodeRow): Promise<boolean | undefined> {
    const access = await this.#deps.accessTo(id).catch((error: unknown) => {
      if (error instanceof TryAgain) return undefined
      throw error
    })
    if (!access?.address) return undefined
    const seen = await getInfo(access.address, access.password(), FUNDS_TIMEOUT_MS)
    return seen.answer === 'info' && seen.info.nodeId === lightningId ? hasFunds(seen.info) : undefined
  }

  /** For operators: restores a deleted node, which is then stopped. */
  async undelete(id: string): Promise<NodeView> {
    const { sql, config } = this.#deps
    const row =
      isId('node', id) &&
      (await sql.begin(async (tx) => {
        const restored = await undeleteNode(tx, id, config.retentionDays)
        if (restored) await logActivity(tx, restored.accountId, 'operator', 'node.undeleted', id)
        return restored
      }))
    if (!row) {
      const node = isId('node', id) && (await findAnyNode(sql, id))
      // Without this, an operator who deleted the wrong node a moment ago would get 404 and think it was lost.
      if (node && node.operation === 'delete') throw inProgress(node.operation)
      if (node && node.releasedAt !== null)
        throw new Problem('node_not_found', 'This node was released to another installation, so it cannot be restored.')
      throw new Problem('node_not_found', 'There is no deleted node with this id, or its retention period has ended.')
    }
    this.#deps.wake()
    return this.#view(row)
  }
}

export function checkedName(text: string): string {
  const name = text.trim()
  const length = [...name].length
  if (length === 0 || length > MAX_NAME) throw new Problem('bad_request', `A name must have 1 to ${MAX_NAME} characters.`)
  if (!isReadable(name)) throw new Problem('bad_request', `A name ${RULES[READABLE]}.`)
  return name
}
