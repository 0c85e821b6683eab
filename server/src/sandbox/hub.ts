import { request } from 'node:http'
import type { Address } from '../nodes/runtime.ts'
import { freshAgent } from '../platform/node-agent.ts'
import { Problem } from '../problems.ts'

const CALL_TIMEOUT_MS = 15_000

/** Address and token of the hub. A hub on this machine generates the token, so it is read from the hub's file for each call. */
export type HubDoor = { readonly address: Address; controlToken: () => string }

/** Client of the sandbox hub, the only way to control sandbox nodes. */
export class Hub {
  readonly #door: HubDoor

  constructor(door: HubDoor) {
    this.#door = door
  }

  fund(lightningId: string, amountSat: number): Promise<{ balanceSat: number }> {
    // A repeated call adds the amount again.
    return this.#ask(`/nodes/${lightningId}/fund`, { amountSat }, ' Check the balance of the node before you repeat it.')
  }

  fault(lightningId: string, fault: string): Promise<unknown> {
    return this.#ask(`/nodes/${lightningId}/fault`, { fault })
  }

  /** For the same payer, a repeated call returns the same answer. Another payer cannot pay an invoice that is already paid. */
  pay(invoice: string, payer: string): Promise<{ paymentHash: string; preimage: string }> {
    return this.#ask('/pay', { invoice, payer })
  }

  async #ask<T>(path: string, body: Record<string, unknown>, advice = ''): Promise<T> {
    let answer: { status: number; body: Record<string, unknown> }
    try {
      answer = await this.#call(path, body)
    } catch (error) {
      throw new Problem(
        'payment_service_unavailable',
        `The sandbox network did not respond. It may still carry out the request.${advice}`,
        { cause: error, details: { reason: 'outcome_unknown' } },
      )
    }
    if (answer.status === 200) return answer.body as T
    const message = String(answer.body.error)
    if (answer.status === 400 || answer.status === 409) throw new Problem('bad_request', message)
    throw new Problem('payment_service_unavailable', message)
  }

  #call(path: string, body: Record<string, unknown>): Promise<{ status: number; body: Record<string, unknown> }> {
    return new Promise((resolve, reject) => {
      const headers = { authorization: `Bearer ${this.#door.controlToken()}`, 'content-type': 'application/json' }
      const signal = AbortSignal.timeout(CALL_TIMEOUT_MS)
      const outgoing = request(
        { ...this.#door.address, method: 'POST', path, headers, agent: freshAgent, signal },
        (response) => {
          let text = ''
          response.setEncoding('utf8')
          response.on('data', (chunk: string) => {
            text += chunk
          })
          response.on('error', reject)
          response.on('end', () => {
            try {
              resolve({ status: response.statusCode ?? 0, body: JSON.parse(text) as Record<string, unknown> })
            } catch (error) {
              reject(error as Error)
            }
          })
        },
      )
      outgoing.on('error', reject)
      outgoing.end(JSON.stringify(body))
    })
  }
}
