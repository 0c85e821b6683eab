import type { Sql } from '../../store/db.ts'
import { type Call, ownNode } from '../own-node.ts'
import type { Runtime } from '../runtime.ts'
import { withoutSecrets } from './secrets-in-logs.ts'

/** Oldest first. `lines` is null if this process cannot read the log: it runs no nodes, or the node is on another host or on Kubernetes. */
export type NodeLog = { lines: string[] | null; isComplete: boolean }

const MAX_BYTES = 64 * 1024
const MAX_LINES = 300
const MAX_LINE_LENGTH = 1_000
/** Longer than what is shown, so that a secret is still recognized if only its beginning would be shown. */
const MAX_SEARCHED_LENGTH = 2 * MAX_LINE_LENGTH

export type NodeLogsDeps = { sql: Sql; runtime: Runtime | undefined; host: string }

/** The end of a node's log, for its owner. */
export class NodeLogs {
  readonly #deps: NodeLogsDeps

  constructor(deps: NodeLogsDeps) {
    this.#deps = deps
  }

  async tail(call: Call, nodeId: string): Promise<NodeLog> {
    const { sql, runtime } = this.#deps
    const { id, host } = await ownNode(sql, call, nodeId)
    if (!runtime?.readLog || host !== this.#deps.host) return { lines: null, isComplete: false }
    const text = (await runtime.readLog(id, MAX_BYTES)) ?? ''
    const isCut = Buffer.byteLength(text) >= MAX_BYTES
    // The first line may have lost its beginning, without which a secret in it could not be recognized.
    const whole = isCut ? text.split('\n').slice(1).join('\n') : text
    const lines = withoutSecrets(
      whole
        .split('\n')
        .map((line) => line.slice(0, MAX_SEARCHED_LENGTH))
        .join('\n'),
    )
      .split('\n')
      .filter((line) => line.trim() !== '')
    return {
      lines: lines.slice(-MAX_LINES).map((line) => [...line].slice(0, MAX_LINE_LENGTH).join('')),
      isComplete: !isCut && lines.length <= MAX_LINES,
    }
  }
}
