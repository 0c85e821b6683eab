/** `expired`: correct except for its time, so the customer can pay again. */
export type RefusalReason = 'invalid' | 'expired'

/**
 * Why a credential is not accepted. Returned, not thrown: invalid credentials are common, and an Error would capture a stack for each. The
 * messages are constant and never quote the credential, because messages end up in logs.
 */
export class Refusal {
  readonly reason: RefusalReason
  readonly message: string
  /** The problem type defined by the Payment scheme, if there is one. */
  readonly problem: string | undefined

  constructor(reason: RefusalReason, message: string, problem?: string) {
    this.reason = reason
    this.message = message
    this.problem = problem
  }
}
