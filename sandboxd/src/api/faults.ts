/** An error response: a status and a plain-text message. */
export class ApiFault extends Error {
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

export const badRequest = (message: string): ApiFault => new ApiFault(400, message)
