import { balanceOf, getInfo, hasFunds } from '../lightning/phoenixd/client.ts'
import type { Address, NodeSpec, Observation } from '../nodes/runtime.ts'

const FIRST_ANSWER_TIMEOUT_MS = 5_000
/** For this long, a process that does not listen is considered starting; afterwards, waiting for its peer. */
const STARTING_MS = 3_000
const SILENCES_TO_HANG = 5

/** Observes a running process through its API. */
export class HealthCheck {
  readonly #passwordOf: (nodeId: string) => Promise<string>
  readonly #silences = new Map<string, number>()

  constructor(passwordOf: (nodeId: string) => Promise<string>) {
    this.#passwordOf = passwordOf
  }

  /** Called when the process is gone: its unanswered requests must not count against the node's next process. */
  forget(nodeId: string): void {
    this.#silences.delete(nodeId)
  }

  /**
   * `isListening`: the platform (Kubernetes) sees from the node's own machine that the port accepts connections. If we cannot
   * connect, the cause is the network, and killing the node would not help.
   */
  async ask(node: NodeSpec, address: Address, isListening = false): Promise<Observation> {
    const answer = await getInfo(address, await this.#passwordOf(node.id), FIRST_ANSWER_TIMEOUT_MS)
    if (answer.answer === 'unreachable' && isListening) return { observed: { phase: 'unreachable' } }
    if (answer.answer !== 'silent' && answer.answer !== 'unreachable') this.#silences.delete(node.id)
    switch (answer.answer) {
      case 'info': {
        const { nodeId, version } = answer.info
        const funds = hasFunds(answer.info)
        const balanceSat = balanceOf(answer.info)
        return {
          observed: { phase: 'running', nodeId, version },
          ...(funds === undefined ? {} : { hasFunds: funds }),
          ...(balanceSat === undefined ? {} : { balanceSat }),
        }
      }
      case 'refused': {
        const startedAtMs = node.history.startedAtMs ?? node.nowMs
        return { observed: { phase: node.nowMs - startedAtMs < STARTING_MS ? 'starting' : 'waiting_for_peer' } }
      }
      case 'silent':
      case 'unreachable': {
        const silences = (this.#silences.get(node.id) ?? 0) + 1
        this.#silences.set(node.id, silences)
        return { observed: { phase: silences >= SILENCES_TO_HANG ? 'hung' : 'starting' } }
      }
      case 'wrong password':
      case 'nonsense':
        // another program has taken the node's port
        return { observed: { phase: 'starting' } }
    }
  }
}
