/** `expired`: all is right with it except its time, so paying again helps. */
export type RefusalReason = 'invalid' | 'expired'

/**
 * Why a credential is not accepted. Returned, not thrown: wrong credentials are ordinary, and an Error would keep a stack for each.
 * Its texts are fixed and repeat nothing that was presented: a credential in a message is a credential in a log.
 */
export class Refusal {
  readonly reason: RefusalReason
  readonly message: string
  /** The type of the problem in the Payment scheme's list, where it has one. */
  readonly problem: string | undefined

  constructor(reason: RefusalReason, message: string, problem?: string) {
    this.reason = reason
    this.message = message
    this.problem = problem
  }
}
