import { api, freshKey } from './api.ts'
import type { GatewayPayment } from './api-types.ts'
import { buildCredential, decoded, type ReadChallenge, readChallenge } from './credential.ts'

export type Terms = { nodeId: string; amountSat: number; description: string; protocol: 'mpp' | 'l402' }
export type Issued = { id: string; protocol: 'mpp' | 'l402'; status: GatewayPayment['status']; challenge: string }
export type Validated = { id: string; protocol: string; status: string; receipt?: string }

/** How far one whole 402 has come; each step has what it needs of the one before it. */
export type Run = {
  terms: Terms
  issued?: Issued
  challenge?: ReadChallenge
  payment?: { paymentHash: string; preimage: string }
  credential?: string
  validated?: Validated
  receipt?: unknown
}

export const STEPS = ['issue', 'refuse', 'pay', 'answer', 'validate', 'receipt'] as const
export type Step = (typeof STEPS)[number]

/** The step that comes next; undefined when all are done. */
export function nextOf(run: Run | null): Step | undefined {
  if (!run?.issued) return 'issue'
  if (!run.challenge) return 'refuse'
  if (!run.payment) return 'pay'
  if (!run.credential) return 'answer'
  if (!run.validated) return 'validate'
  return run.receipt === undefined ? 'receipt' : undefined
}

/** Takes one step. Those that are the customer's or their client's are taken here in the browser, as they would be at theirs. */
export async function take(step: Step, run: Run): Promise<Run> {
  switch (step) {
    case 'issue':
      return { ...run, issued: await api.post<Issued>('/payments', run.terms, { idempotencyKey: freshKey() }) }
    case 'refuse':
      return { ...run, challenge: readChallenge(run.issued?.challenge ?? '') }
    case 'pay':
      return { ...run, payment: await api.post('/sandbox/pay', { invoice: run.challenge?.invoice }) }
    case 'answer':
      if (!run.challenge || !run.payment) return run
      return { ...run, credential: buildCredential(run.challenge, run.payment.preimage) }
    case 'validate':
      return {
        ...run,
        validated: await api.post<Validated>(`/payments/${run.issued?.id}/validate`, { credential: run.credential }),
      }
    case 'receipt':
      return { ...run, receipt: run.validated?.receipt ? decoded(run.validated.receipt) : null }
  }
}
