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
    const answer = await fetch(`${process.env.NODE_URL}/payinvoice`, { method: 'POST', headers: { authorization }, body })
    const { paymentPreimage, reason } = (await answer.json()) as { paymentPreimage?: string; reason?: string }
    if (paymentPreimage === undefined) throw new Error(reason ?? `The node returned HTTP ${answer.status}.`)
    return { preimage: paymentPreimage }
  },
}

const answer = await fetch402(url, {}, { wallet, maxAmount: 100 })
process.stdout.write(`${await answer.text()}\n`)
process.exitCode = answer.ok ? 0 : 1
