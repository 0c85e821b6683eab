import { closeSync, constants, fstatSync, fsyncSync, ftruncateSync, openSync, writeFileSync } from 'node:fs'
import { jsonObjectIn } from '../../../protocol/src/bytes.ts'
import type { Paid } from '../../../sdk/src/buy/wallets/wallet.ts'
import type { Call } from '../call.ts'
import { type ExitName, Failure, usage } from '../failure.ts'
import { isSystemError, reasonOf } from '../files.ts'
import { painter, sanitize, sat, sheet } from '../terminal.ts'
import type { Purchase } from './saved-purchase.ts'

export class OutputFailure extends Failure {
  readonly reason: string

  constructor(cause: NodeJS.ErrnoException) {
    super('other', 'output_failed', `The output could not be written: ${reasonOf(cause)}.`, { cause })
    this.reason = reasonOf(cause)
  }
}

export type Output = { begin: () => void; write: (chunk: Uint8Array) => Promise<void> | void; close: () => void }

/** Opened before anything is paid, so that a wrong path or missing permission cannot waste a payment. */
export function openOutput(call: Call): Output {
  const path = call.text('output')
  if (path === undefined) return standardOutput()
  try {
    // Keep the existing content until there is something to replace it with.
    const descriptor = openSync(path, constants.O_WRONLY | constants.O_CREAT)
    // A pipe or a device cannot be truncated.
    const isFile = fstatSync(descriptor).isFile()
    return {
      begin: () => writing(() => isFile && ftruncateSync(descriptor)),
      write: (chunk) => writing(() => writeFileSync(descriptor, chunk)),
      close: () =>
        writing(() => {
          // The credential is removed after this, so the output must be on disk.
          if (isFile) fsyncSync(descriptor)
          closeSync(descriptor)
        }),
    }
  } catch (error) {
    if (!isSystemError(error)) throw error
    throw usage(`Cannot write ${sanitize(path)}: ${reasonOf(error)}.`)
  }
}

function writing(act: () => unknown): void {
  try {
    act()
  } catch (error) {
    throw isSystemError(error) ? new OutputFailure(error) : error
  }
}

function standardOutput(): Output {
  const { stdout } = process
  const decoder = new TextDecoder()
  const write = (chunk: Uint8Array): Promise<void> => {
    // The server's output must not control the terminal.
    const data = stdout.isTTY ? sanitize(decoder.decode(chunk, { stream: true }), '\n\t\r') : chunk
    // After an error this waits forever: the handler in main.ts reports it and exits.
    return new Promise((resolve) => {
      stdout.write(data, (error) => {
        if (!error) resolve()
      })
    })
  }
  return { begin: () => undefined, write, close: () => undefined }
}

/** Writes the body to the output and the cost to stderr. The body of an error response is not data and goes into the error message. */
export async function deliver(
  call: Call,
  response: Response,
  output: Output,
  exit?: ExitName,
  sale?: { kept: Purchase; paid: Paid | undefined },
): Promise<void> {
  if (exit) {
    const text = await response.text()
    throw new Failure(exit, 'http_error', `The server returned HTTP ${response.status}. ${text.slice(0, 500)}`, {
      details: { status: response.status },
    })
  }
  call.spinner.stop()
  output.begin()
  for await (const chunk of response.body ?? []) await output.write(chunk)
  output.close()
  if (process.stdout.isTTY && call.text('output') === undefined) process.stdout.write('\n')
  if (sale) tell(call, response, sale)
}

function tell(call: Call, response: Response, { kept, paid }: { kept: Purchase; paid: Paid | undefined }): void {
  const receipt = receiptOf(response)
  const { amountSat, paymentHash } = kept
  if (!process.stderr.isTTY || call.flag('json')) {
    const cost = paid
      ? { paid: { amountSat, ...(paid.feeSat === undefined ? {} : { feeSat: paid.feeSat }), paymentHash } }
      : { paid: null }
    process.stderr.write(`${JSON.stringify({ ...cost, ...(receipt ? { receipt } : {}) })}\n`)
    return
  }
  const fee = paid?.feeSat === undefined ? '' : ` + ${sat(paid.feeSat)} fee`
  const rows: [string, string][] = [
    ['paid', paid ? `${sat(amountSat)}${fee}` : 'nothing; used the credential from an earlier run'],
    ['payment', paymentHash],
    ...(receipt ? [['receipt', sanitize(JSON.stringify(receipt))] as [string, string]] : []),
  ]
  process.stderr.write(sheet(rows, painter(process.stderr)))
}

/** For display only: the receipt is not signed and proves nothing. */
function receiptOf({ headers }: Response): Record<string, unknown> | undefined {
  return jsonObjectIn(headers.get('payment-receipt') ?? headers.get('payment-response') ?? '')
}
