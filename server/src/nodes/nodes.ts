import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { isReadable, READABLE, RULES } from '../../../contract/src/readable-text.ts'
import type { Config } from '../config.ts'
import { once, type Repeatable } from '../idempotency.ts'
import { crashpoint } from '../platform/crashpoint.ts'
import { isId } from '../platform/ids.ts'
import type { MasterKey } from '../platform/secrets.ts'
import { sameVersion } from '../platform/versions.ts'
import { noSuchNode, Problem } from '../problems.ts'
import { logActivity } from '../store/activity.ts'
import { isOutOfGrace } from '../store/credit/credit.ts'
import type { Database, Sql } from '../store/db.ts'
import { recordFunds } from '../store/nodes/funds.ts'
import { findAnyNode, findNode, listAllNodes, listNodes, type NodeRow, renameNode, type ShownNode } from '../store/nodes/nodes.ts'
import { type Ask, beginOperation, undeleteNode } from '../store/nodes/operations.ts'
import { admitNode, NoCredit, requireCredit } from './admission.ts'
import { type CreateNodeDeps, type CreateNodeParams, type Credentials, insertPrepared, prepareNode } from './create.ts'
import type { OperationKind, Status } from './node.ts'
import { specOf } from './node-spec.ts'
import type { Runtime } from './runtime.ts'

/** What its owner can know of a node. The public API shows the first nine. */
export type NodeView = {
  id: string
  name: string
  status: Status
  endpointUrl: string
  failureMessage: string | null
  updateStatus: 'updating' | 'updated' | 'failed' | null
  updateCompletedAt: number | null
  createdAt: number
  updatedAt: number
  accessMode: 'limited' | 'full'
  autoLiquidity: string
  /** The one that runs now. */
  operation: OperationKind | null
  /** When it was last seen with its channels online. */
  hasFunds: boolean
  /** Ready, but it did not answer when it was last asked. */
  isSilent: boolean
}
export type OperatorNodeView = NodeView & Pick<NodeRow, 'accountId' | 'version' | 'host' | 'phase' | 'deletedAt'>
export type CreateRequest = Pick<CreateNodeParams, 'name' | 'autoLiquidity' | 'accessMode'>
/** Who asks, and for which account. */
export type Call = { accountId: string; actor: string }

const MAX_NAME = 16
/** Beyond an operation's own deadline: the reconciler may be a step behind. */
const EXTRA_WAIT_MS = 10_000
const LONGEST_POLL_MS = 250

export type NodesDeps = CreateNodeDeps & {
  sql: Database
  config: Config
  masterKeys: MasterKey[]
  /** Undefined in a process that only serves. */
  runtime: Runtime | undefined
  /** What a caller could pay to have this much more credit; undefined where it cannot be bought now. */
  offerTopUp: (accountId: string, missingMsat: number) => Promise<object | undefined>
  wake: () => void
  isStopping: () => boolean
}

/** What the API can ask of nodes. Nothing is started inside a request: it writes down what is wanted and wakes the reconciler. */
export class Nodes {
  readonly #deps: NodesDeps

  constructor(deps: NodesDeps) {
    this.#deps = deps
  }

  #view(row: ShownNode): NodeView {
    const { config } = this.#deps
    const { id, name, status, failureMessage, updateStatus, updateCompletedAt, createdAt, updatedAt } = row
    const { accessMode, autoLiquidity, operation, hasFunds, isSilent } = row
    const endpointUrl = config.nodeDomain
      ? `https://${id.slice('node_'.length)}.${config.nodeDomain}`
      : `${config.publicUrl}/n/${id}`
    return {
      id,
      name,
      status,
      endpointUrl,
      failureMessage,
      updateStatus,
      updateCompletedAt,
      createdAt,
      updatedAt,
      accessMode,
      autoLiquidity,
      operation,
      hasFunds,
      isSilent,
    }
  }

  async create(call: Call, input: CreateRequest, repeatable: Repeatable): Promise<{ node: NodeView; credentials: Credentials }> {
    const name = input.name === undefined || input.name.trim() === '' ? undefined : checkedName(input.name)
    const { sql, config, masterKeys, host } = this.#deps
    const created = once(sql, masterKeys, repeatable, 202, {
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

  /** A refusal for want of credit says how to get it, where that is possible. */
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

  /** For operators: of all accounts, deleted ones included. */
  async listAll(): Promise<OperatorNodeView[]> {
    return (await listAllNodes(this.#deps.sql)).map((row) => {
      const { accountId, version, host, phase, deletedAt } = row
      return { ...this.#view(row), accountId, version, host, phase, deletedAt }
    })
  }

  async get(call: Call, id: string): Promise<NodeView> {
    return this.#view(await this.#find(call, id))
  }

  async #find(call: Call, id: string): Promise<NodeRow> {
    // What is no id names no node, and may hold characters that the store has no place for.
    const row = isId('node', id) && (await findNode(this.#deps.sql, call.accountId, id))
    if (!row) throw noSuchNode()
    return row
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
      // Counted with the others from here on.
      this.#operate(call, id, ask, (store) => requireCredit(store, config.nodePriceSatPerDay, call.accountId, 0)),
    )
  }

  async restart(call: Call, id: string): Promise<NodeView> {
    const timeoutMs = this.#deps.config.operationTimeoutMs
    return this.#operate(call, id, { kind: 'restart', from: ['ready'], state: 'running', newRun: true, timeoutMs })
  }

  async stop(call: Call, id: string): Promise<NodeView> {
    const timeoutMs = this.#deps.config.operationTimeoutMs
    return this.#operate(call, id, { kind: 'stop', from: ['ready', 'failed'], state: 'stopped', newRun: false, timeoutMs })
  }

  /** Of an account that has been out of credit for too long. Nobody waits for it; a node that is busy is refused like any other caller's. */
  async stopForCredit(accountId: string, id: string): Promise<void> {
    const { config } = this.#deps
    const timeoutMs = config.operationTimeoutMs
    const ask = { kind: 'stop', from: ['ready', 'failed'], state: 'stopped', newRun: false, timeoutMs } as const
    await this.#begin({ accountId, actor: 'credit' }, id, ask, async (store) => {
      const graceSeconds = config.creditGraceHours * 3_600
      // Paid in the meantime.
      if (!(await isOutOfGrace(store, accountId, config.nodePriceSatPerDay * 1000, graceSeconds)))
        throw new Problem('invalid_node_state', 'The account has credit again.')
    })
  }

  async updates(
    call: Call,
    id: string,
  ): Promise<{ currentVersion: string; latestVersion: string; updateAvailable: boolean; lastUpdateError: string | null }> {
    const node = await this.#find(call, id)
    const currentVersion = node.version ?? node.desiredVersion
    const latestVersion = this.#deps.versions.at(-1) ?? currentVersion
    return {
      currentVersion,
      latestVersion,
      updateAvailable: this.#isNewer(latestVersion, currentVersion),
      lastUpdateError: node.lastUpdateError,
    }
  }

  /** Newer is what stands later in the catalogue; a version that is no longer in it is older than all. */
  #isNewer(version: string, than: string): boolean {
    const { versions } = this.#deps
    return versions.includes(version) && versions.indexOf(version) > versions.findIndex((one) => sameVersion(one, than))
  }

  async update(call: Call, id: string, wanted: string | undefined): Promise<NodeView> {
    const node = await this.#find(call, id)
    const from: Status[] = ['ready', 'failed', 'stopped']
    this.#requireState(node, 'update', from)
    const version = wanted ?? this.#deps.versions.at(-1) ?? ''
    if (!this.#isNewer(version, node.version ?? node.desiredVersion))
      throw new Problem('no_update_available', 'There is no newer version available for this node.')
    const state = node.status === 'stopped' ? 'as it is' : 'running'
    const row = await this.#begin(call, id, {
      kind: 'update',
      from,
      state,
      newRun: false,
      version,
      timeoutMs: this.#deps.config.provisionDeadlineMs,
    })
    return this.#view(row)
  }

  /** Answers once the deletion is durable; the process is gone soon after. Its data is kept for the retention period. */
  async delete(call: Call, id: string, force: boolean): Promise<void> {
    const node = await this.#find(call, id)
    if (node.operation) throw inProgress(node.operation)
    // Fresher than the last look, where the node can be asked.
    const seen = node.host === this.#deps.host ? await this.#deps.runtime?.observe(specOf(node)) : undefined
    // Kept: the next one may find its channels offline.
    if (seen?.hasFunds !== undefined) await recordFunds(this.#deps.sql, id, seen.hasFunds, node.nowMs)
    const from: Status[] = ['provisioning', 'ready', 'stopped', 'failed']
    await this.#begin(call, id, {
      kind: 'delete',
      from,
      unlessFunded: !force,
      state: 'deleted',
      newRun: false,
      timeoutMs: this.#deps.config.operationTimeoutMs,
    })
  }

  /** For operators: a deleted node comes back, stopped. */
  async undelete(id: string): Promise<NodeView> {
    const { sql, config } = this.#deps
    const row = isId('node', id) && (await undeleteNode(sql, id, config.retentionDays))
    if (!row) {
      const node = isId('node', id) && (await findAnyNode(sql, id))
      // Told that there is none, whoever deleted the wrong one a moment ago would think it lost.
      if (node && node.operation === 'delete') throw inProgress(node.operation)
      throw new Problem('node_not_found', 'There is no deleted node with this id, or its retention period has ended.')
    }
    await logActivity(sql, row.accountId, 'operator', 'node.undeleted', id)
    this.#deps.wake()
    return this.#view(row)
  }

  #requireState(node: NodeRow, kind: OperationKind, from: readonly Status[]): void {
    if (!from.includes(node.status)) {
      throw new Problem('invalid_node_state', `The node is ${node.status}. To ${kind} it, it must be ${from.join(' or ')}.`)
    }
    if (node.operation) throw inProgress(node.operation)
  }

  async #begin(call: Call, id: string, ask: Omit<Ask, 'operationId'>, check: Check = async () => undefined): Promise<NodeRow> {
    this.#requireState(await this.#find(call, id), ask.kind, ask.from)
    const row = await this.#deps.sql.begin(async (sql) => {
      const begun = await beginOperation(sql, call.accountId, id, { ...ask, operationId: randomUUID() })
      if (!begun) return undefined
      await check(sql)
      await logActivity(sql, call.accountId, call.actor, `node.${ask.kind}`, id)
      return begun
    })
    if (!row) {
      // The statement decided; this only finds the words for it.
      const node = await this.#find(call, id)
      this.#requireState(node, ask.kind, ask.from)
      if (ask.unlessFunded && node.hasFunds)
        throw new Problem('node_has_funds', 'The node holds funds. Send them elsewhere first, or retry with ?force=true.')
      throw inProgress(ask.kind)
    }
    crashpoint('operation: begun')
    this.#deps.wake()
    return row
  }

  /** Waits until the operation has ended. Whoever stops waiting does not stop the operation. */
  async #operate(call: Call, id: string, ask: Omit<Ask, 'operationId'>, check?: Check): Promise<NodeView> {
    const { operationId } = await this.#begin(call, id, ask, check)
    const deadline = performance.now() + ask.timeoutMs + EXTRA_WAIT_MS
    for (let pauseMs = 20; performance.now() < deadline; pauseMs = Math.min(pauseMs * 1.5, LONGEST_POLL_MS)) {
      await pause(pauseMs)
      if (this.#deps.isStopping()) {
        throw new Problem('service_unavailable', 'The service is shutting down. The operation continues.', {
          headers: { 'retry-after': '5' },
        })
      }
      const row = await findAnyNode(this.#deps.sql, id)
      if (row && row.operationId === operationId && row.operation) continue
      if (!row || row.operationId !== operationId || row.operationResult === 'done') return this.get(call, id)
      throw new Problem('payment_service_unavailable', row.failureMessage ?? 'The node did not start in time.')
    }
    throw new Problem('payment_service_unavailable', 'The node did not start in time.')
  }
}

function checkedName(text: string): string {
  const name = text.trim()
  const length = [...name].length
  if (length === 0 || length > MAX_NAME) throw new Problem('bad_request', `A name must have 1 to ${MAX_NAME} characters.`)
  if (!isReadable(name)) throw new Problem('bad_request', `A name ${RULES[READABLE]}.`)
  return name
}

const inProgress = (kind: OperationKind): Problem =>
  new Problem('operation_in_progress', `Another operation (${kind}) is running on this node. Try again when it has finished.`, {
    headers: { 'retry-after': '1' },
  })

/** Inside the transaction that begins the operation: what it throws undoes all of it. */
type Check = (store: Sql) => Promise<void>
