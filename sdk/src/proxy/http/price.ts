import { request as httpRequest } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { isObject } from '../../../../protocol/src/bytes.ts'
import { warn } from '../../paywall/trouble.ts'

export type Price = { amountSat: number; description: string | undefined }
export type Priced = { method: string; url: string; bodySha256: string }

const WITHIN_MS = 2_000
const LONGEST_ANSWER = 65_536
const LONGEST_DESCRIPTION = 500

/** Undefined if there is no usable price. */
export async function askPrice(priceFrom: string, priced: Priced, left: AbortSignal): Promise<Price | undefined> {
  try {
    return priceIn(await post(priceFrom, JSON.stringify(priced), left))
  } catch (error) {
    left.throwIfAborted()
    warn(`price ${priceFrom}`, `priceFrom returned no price: ${error instanceof Error ? error.message : String(error)}`, 'proxy')
    return undefined
  }
}

function priceIn(text: string): Price {
  const answer: unknown = JSON.parse(text)
  const { amountSat, description } = isObject(answer) ? answer : {}
  if (!Number.isSafeInteger(amountSat) || (amountSat as number) < 1)
    throw new Error('amountSat must be a whole number, at least 1.')
  if (
    description !== undefined &&
    (typeof description !== 'string' || description === '' || [...description].length > LONGEST_DESCRIPTION)
  )
    throw new Error(`description must be text of 1 to ${LONGEST_DESCRIPTION} characters.`)
  return { amountSat: amountSat as number, description: description as string | undefined }
}

function post(url: string, body: string, left: AbortSignal): Promise<string> {
  const send = url.startsWith('https:') ? httpsRequest : httpRequest
  const signal = AbortSignal.any([left, AbortSignal.timeout(WITHIN_MS)])
  const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }
  return new Promise((resolve, reject) => {
    // On a new connection: a kept one may just have been closed, and a price is needed now.
    const outgoing = send(url, { method: 'POST', headers, signal, agent: false }, (answer) => {
      outgoing.removeListener('close', close)
      let text = ''
      answer.setEncoding('utf8')
      answer.on('data', (chunk: string) => {
        text += chunk
        if (text.length > LONGEST_ANSWER) outgoing.destroy(new Error('The response is too long.'))
      })
      answer.once('error', reject)
      answer.once('end', () =>
        answer.statusCode === 200 ? resolve(text) : reject(new Error(`The status is ${answer.statusCode}.`)),
      )
    })
    outgoing.once('error', (error) => reject(signal.aborted ? new Error(`No response within ${WITHIN_MS} ms.`) : error))
    // There is no error if the server switches to another protocol without being asked.
    const close = (): void => reject(new Error('The connection was closed without a response.'))
    outgoing.once('close', close)
    outgoing.end(body)
  })
}
