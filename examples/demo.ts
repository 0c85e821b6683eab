import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Boltyard, ConflictError, paymentIdOf } from '../sdk/src/index.ts'
import { killDaemons, Service } from '../testing/service.ts'

const HELP = `npm run demo [-- --json]

Runs the whole story in a temporary instance: create a node, respond with 402, pay as a customer, deliver. With MPP and with L402.
Uses play money only.
  --json   print only one line of JSON at the end
`

type Protocol = 'mpp' | 'l402'
type Purchase = {
  protocol: Protocol
  paymentId: string
  amountSat: number
  receipt: string | null
  paidMs: number
  secondTime: number
}

const args = process.argv.slice(2)
if (args.includes('--help') || args.includes('-h')) {
  process.stdout.write(HELP)
  process.exit(0)
}
const unknown = args.find((arg) => arg !== '--json')
if (unknown !== undefined) {
  process.stderr.write(`npm run demo: unknown option ${unknown}\n\n${HELP}`)
  process.exit(2)
}
const isJson = args.includes('--json')
const started = performance.now()
const isColoured = process.stdout.isTTY && !process.env.NO_COLOR
const dim = (text: string): string => (isColoured ? `\u001b[2m${text}\u001b[0m` : text)
const bold = (text: string): string => (isColoured ? `\u001b[1m${text}\u001b[0m` : text)

function say(what: string, detail = ''): void {
  if (isJson) return
  const at = `${((performance.now() - started) / 1000).toFixed(1)} s`.padStart(7)
  process.stdout.write(`${dim(at)}  ${what}${detail && `\n         ${dim(detail)}`}\n`)
}

const dataDir = mkdtempSync(join(tmpdir(), 'boltyard-demo-'))
const service = new Service(dataDir)
let shop: Server | undefined

async function cleanUp(): Promise<void> {
  shop?.close()
  shop?.closeAllConnections()
  await service.stop()
  killDaemons(dataDir)
  rmSync(dataDir, { recursive: true, force: true })
}

for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => {
    void cleanUp().finally(() => process.exit(130))
  })

try {
  const result = await play()
  await cleanUp()
  if (isJson) process.stdout.write(`${JSON.stringify(result)}\n`)
  else say(bold('Done.'), 'Your turn: npm start')
} catch (error) {
  process.stderr.write(`The demo failed: ${error instanceof Error ? error.message : error}\n`)
  await cleanUp()
  process.exitCode = 1
}

async function play(): Promise<{ ok: true; tookMs: number; nodeReadyMs: number; purchases: Purchase[] }> {
  say(bold('Boltyard starts'), 'its own PostgreSQL, its own data directory, nothing else installed')
  await service.start()
  const boltyard = new Boltyard({ apiKey: service.key, baseUrl: `${service.url}/v1` })

  say(bold('A node for the shop'), `POST ${service.url}/v1/nodes`)
  const asked = performance.now()
  const { node } = await boltyard.nodes.create({ name: 'shop' })
  await boltyard.nodes.waitUntilReady(node.id)
  const nodeReadyMs = Math.round(performance.now() - asked)
  say(`ready after ${nodeReadyMs} ms, with its own recovery words and passwords`, node.endpointUrl)

  say(bold('A customer, with a node too'), 'the sandbox gives it 100,000 sat to play with')
  const customer = await boltyard.nodes.create({ name: 'customer', accessMode: 'full' })
  await boltyard.nodes.waitUntilReady(customer.node.id)
  const operatorToken = readFileSync(join(dataDir, 'operator.token'), 'utf8').trim()
  const funded = await service.call(
    'POST',
    `/operator/v1/sandbox/nodes/${customer.node.id}/fund`,
    { amountSat: 100_000 },
    operatorToken,
  )
  if (funded.status !== 200) throw new Error(`the faucet answered ${funded.status}`)

  shop = openShop(boltyard, node.id)
  shop.listen(0, '127.0.0.1')
  await once(shop, 'listening')
  const url = `http://127.0.0.1:${(shop.address() as AddressInfo).port}/joke`
  const wallet = { url: customer.node.endpointUrl, password: customer.credentials.password }
  const purchases = [await buy(url, 'mpp', wallet), await buy(url, 'l402', wallet)]

  const { payments } = await boltyard.payments.list({ status: 'paid' })
  say(bold('The books'), payments.map((payment) => `${payment.protocol} ${payment.amountSat} sat, ${payment.status}`).join(' · '))
  return { ok: true, tookMs: Math.round(performance.now() - started), nodeReadyMs, purchases }
}

/** All that a shop has to do: create a challenge, send it with a 402, and redeem the credential that comes back. It stores nothing. */
function openShop(boltyard: Boltyard, nodeId: string): Server {
  return createServer(async ({ url = '', headers: { authorization = '' } }, response) => {
    try {
      const paymentId = paymentIdOf(authorization)
      if (paymentId !== undefined) {
        const paid = await boltyard.payments.redeem(paymentId, { credential: authorization }).catch((error: unknown) => {
          if (error instanceof ConflictError) return undefined
          throw error
        })
        if (paid) {
          response.writeHead(200, paid.receipt === undefined ? {} : { 'payment-receipt': paid.receipt })
          response.end('Why did the channel close? It had no balance.')
          return
        }
      }
      const protocol = new URL(url, 'http://shop').searchParams.get('protocol') === 'l402' ? 'l402' : 'mpp'
      const { challenge } = await boltyard.payments.create({ nodeId, amountSat: 21, description: 'one joke', protocol })
      response.writeHead(402, { 'www-authenticate': challenge }).end('402 Payment Required\n')
    } catch (error) {
      response.writeHead(503).end(String(error))
    }
  })
}

async function buy(url: string, protocol: Protocol, wallet: { url: string; password: string }): Promise<Purchase> {
  say(bold(`Buying a joke with ${protocol.toUpperCase()}`), `GET ${url}?protocol=${protocol}`)
  const refused = await fetch(`${url}?protocol=${protocol}`)
  const challenge = refused.headers.get('www-authenticate') ?? ''
  if (refused.status !== 402) throw new Error(`the shop returned ${refused.status} instead of 402`)
  say('402 Payment Required', `WWW-Authenticate: ${challenge.slice(0, 72)}…`)

  const before = performance.now()
  const { preimage, amountSat } = await pay(invoiceIn(challenge), wallet)
  const paidMs = Math.round(performance.now() - before)
  say(`paid ${amountSat} sat in ${paidMs} ms`, 'the money is on the shop’s own node')

  const headers = { authorization: credentialOf(challenge, preimage) }
  const delivered = await fetch(`${url}?protocol=${protocol}`, { headers })
  const text = await delivered.text()
  if (delivered.status !== 200) throw new Error(`the shop returned ${delivered.status} to a paid credential: ${text}`)
  const receipt = delivered.headers.get('payment-receipt')
  say(
    `200 OK: “${text}”`,
    receipt === null ? 'L402 has no receipt: the credential itself is the ticket' : `Payment-Receipt: ${receipt.slice(0, 60)}…`,
  )

  const again = await fetch(`${url}?protocol=${protocol}`, { headers })
  await again.arrayBuffer()
  const expected = protocol === 'mpp' ? 402 : 200
  if (again.status !== expected) throw new Error(`on the second visit the shop returned ${again.status} instead of ${expected}`)
  say(
    protocol === 'mpp'
      ? 'the same credential again: 402, one payment buys one joke'
      : 'the same credential again: 200, until it expires',
  )
  return { protocol, paymentId: paymentIdOf(headers.authorization) ?? '', amountSat, receipt, paidMs, secondTime: again.status }
}

async function pay(invoice: string, wallet: { url: string; password: string }): Promise<{ preimage: string; amountSat: number }> {
  const response = await fetch(`${wallet.url}/payinvoice`, {
    method: 'POST',
    headers: { authorization: `Basic ${btoa(`:${wallet.password}`)}` },
    body: new URLSearchParams({ invoice }),
  })
  const answer = (await response.json()) as { paymentPreimage?: string; recipientAmountSat?: number; reason?: string }
  if (answer.paymentPreimage === undefined) throw new Error(`the payment failed: ${answer.reason ?? response.status}`)
  return { preimage: answer.paymentPreimage, amountSat: answer.recipientAmountSat ?? 0 }
}

/** Does what a client of either protocol does. See examples/agent.ts and docs/gateway.md for libraries that do it for you. */
function parametersOf(challenge: string): Record<string, string> {
  return Object.fromEntries([...challenge.matchAll(/(\w+)="([^"]*)"/g)].map(([, name = '', value = '']) => [name, value]))
}

function invoiceIn(challenge: string): string {
  const { invoice, request = '' } = parametersOf(challenge)
  return invoice ?? JSON.parse(Buffer.from(request, 'base64url').toString()).methodDetails.invoice
}

function credentialOf(challenge: string, preimage: string): string {
  const { macaroon, ...echoed } = parametersOf(challenge)
  if (macaroon !== undefined) return `L402 ${macaroon}:${preimage}`
  return `Payment ${Buffer.from(JSON.stringify({ challenge: echoed, payload: { preimage } })).toString('base64url')}`
}
