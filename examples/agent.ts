import { fetch402 } from '@getalby/lightning-tools/402'

/**
 * An agent that pays for what it needs over MPP or L402, from its own node and within a limit:
 * `NODE_URL=… NODE_PASSWORD=… npx tsx examples/agent.ts http://localhost:3000/joke`. You get both values when you create the node.
 */
const [url = ''] = process.argv.slice(2)

const wallet = {
  async payInvoice({ invoice }: { invoice: string }): Promise<{ preimage: string }> {
    const authorization = `Basic ${btoa(`:${process.env.NODE_PASSWORD}`)}`
    const body = new URLSearchParams({ invoice })
    // In this case, ask the node before you buy again. Paying the same invoice again is safe: a node pays it only once.
    const unknown = (why: unknown): Error => new Error(`The node may have paid, or may still pay, ${invoice} (${why}).`)
    const answer = await fetch(`${process.env.NODE_URL}/payinvoice`, { method: 'POST', headers: { authorization }, body }).catch(
      (error) => {
        throw unknown(error)
      },
    )
    if (answer.status >= 500) throw unknown(`HTTP ${answer.status}`)
    if (!answer.ok) throw new Error(`The node returned HTTP ${answer.status}: ${await answer.text()}`)
    const text = await answer.text().catch((error) => {
      throw unknown(error)
    })
    const { paymentPreimage, reason } = JSON.parse(text) as { paymentPreimage?: string; reason?: string }
    if (paymentPreimage === undefined) throw new Error(reason)
    return { preimage: paymentPreimage }
  },
}

const answer = await fetch402(url, {}, { wallet, maxAmount: 100 })
process.stdout.write(`${await answer.text()}\n`)
process.exitCode = answer.ok ? 0 : 1
