import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { Boltyard } from '@boltyard/sdk'
import { discovery, paywall } from '@boltyard/sdk/express'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { ROOMY } from '../../cli/test/harness.ts'
import { requestIn } from '../../dashboard/src/text/code/program-snippets.ts'
import { createWebhookCurl, inviteCurl, listenCli, MAKE_TOKEN, printToken } from '../../dashboard/src/text/code/snippets.ts'
import { charge, credentialOf, pay, storeOf, untilSettled } from '../../server/test/support/gateway.ts'
import { type Created, fund, Owner } from '../../server/test/support/nodes.ts'
import { eventually, freePort, removeAfterwards, type Server, startServer } from '../../server/test/support/server.ts'
import { BOLTYARD } from '../../testing/bundles.ts'
import { openReceiver, verified } from '../../testing/receiver.ts'
import { Shell } from '../../testing/shell.ts'
import { root } from '../source-graph.ts'

/** Commands of the documentation and the dashboard, typed into a shell as they are, except for ports, ids and addresses. */

/** Inside the folder of the SDK, so that Node finds `@boltyard/sdk` by its name. */
const directory = mkdtempSync(join(root, 'sdk/types-'))
removeAfterwards(directory)
const bin = join(directory, 'bin')
let server: Server
let owner: Owner
let shop: Created

beforeAll(async () => {
  mkdirSync(bin)
  writeFileSync(join(bin, 'boltyard'), `#!/bin/sh\nexec '${process.execPath}' '${BOLTYARD}' "$@"\n`)
  chmodSync(join(bin, 'boltyard'), 0o755)
  server = await startServer({ env: ROOMY })
  owner = new Owner(server, await server.newKey(['nodes:write', 'gateway:write', 'events:read', 'webhooks:write']))
  shop = await owner.createReady({ name: 'shop' })
})

function terminal(more: Record<string, string> = {}): Shell {
  const env = { SERVICE_BASE_URL: `${server.url}/v1`, SERVICE_API_KEY: owner.key.key, DATA_DIR: server.dataDir, ...more }
  return new Shell(directory, { PATH: `${bin}:${process.env.PATH}`, HOME: directory, ...env })
}

const read = (page: string): string => readFileSync(join(root, page), 'utf8')
const blocksOf = (page: string, language: string): string[] =>
  [...read(page).matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)].flatMap(([, own, text = '']) => (own === language ? [text] : []))
/** Fails if the page has changed, so that no replacement is lost. */
function replaced(text: string, pairs: [string, string][]): string {
  for (const [from] of pairs) expect(text).toContain(from)
  return pairs.reduce((all, [from, to]) => all.replaceAll(from, to), text)
}

/** Sells one joke to the sandbox's wallet; the customer does not come back. */
async function sell(): Promise<string> {
  const payment = await charge(owner, shop, { amountSat: 21, description: 'One joke' })
  await pay(server, payment)
  await untilSettled(owner, payment)
  return payment.id
}

describe('docs/events.md', () => {
  const page = 'docs/events.md'
  const [feed = '', stream = '', webhooks = '', csv = ''] = blocksOf(page, 'sh')
  const [sample] = blocksOf(page, 'json').map((text) => JSON.parse(text))

  test('the feed has the fields that the page shows, and the stream the lines it names', async () => {
    const live = terminal()
    live.enter(stream)
    await live.prints(/^id: \S+\n\n/m)
    const id = await sell()
    await live.prints(new RegExp(`^event: payment\\.settled\ndata: .*"${id}".*\n\n`, 'm'))
    await live.close()

    const shell = terminal()
    const { events, nextCursor } = await eventually(async () => {
      const answer = JSON.parse(await shell.type(feed))
      return answer.events.length > 0 && answer
    }, 'the event in the feed')
    expect(nextCursor).toEqual(expect.any(String))
    expect(events.map(({ type }: { type: string }) => type)).toEqual(['payment.settled'])
    expect(Object.keys(events[0])).toEqual(Object.keys(sample.events[0]))
    expect(events[0].data).toMatchObject({ paymentId: id, amountSat: 21, description: 'One joke' })
    expect(Object.keys(sample.events[0].data)).toEqual(expect.arrayContaining(Object.keys(events[0].data)))
    await shell.leave()
  })

  test('each command for webhooks does what its comment says', async () => {
    const receiver = await openReceiver()
    const shell = terminal()
    let ids: [string, string][] = []
    const run = async (line: string): Promise<any> => JSON.parse(await shell.type(replaced(line, ids)))
    const [create = '', sample = '', list = '', deliveries = '', redeliver = '', replay = '', rotate = ''] = webhooks
      .trim()
      .split('\n')

    const { id, secret } = JSON.parse(await shell.type(replaced(create, [['https://shop.example/hook', receiver.url]])))
    ids = [['hook_…', id]]
    expect(await run(sample)).toMatchObject({ status: 200, response: 'thank you' })
    expect(verified(secret, receiver.received[0] as never)).toMatchObject({ type: 'payment.settled' })
    ids = []
    expect(await run(list)).toMatchObject({ webhooks: [{ id, enabled: true, types: ['payment.*'] }] })
    ids = [['hook_…', id]]
    await sell()
    await receiver.until(2)
    const sql = storeOf(server)
    await eventually(async () => {
      const given = await sql`
        UPDATE webhook_deliveries SET status = 'failed', next_at = NULL WHERE webhook_id = ${id} AND status = 'delivered' RETURNING 1`
      return given.length === 1
    }, 'the delivery to be recorded')
    const { deliveries: failed } = await run(deliveries)
    expect(failed).toMatchObject([{ status: 'failed', type: 'payment.settled', attempts: [{ status: 200 }] }])
    ids = [
      ['hook_…', id],
      ['dlv_…', failed[0].id],
    ]
    expect(await run(redeliver)).toMatchObject({ id: failed[0].id, status: 'pending' })
    await receiver.until(3)
    ids = [['hook_…', id]]
    const { events } = await owner.want<{ events: unknown[] }>(200, 'GET', '/events?types=payment.settled')
    expect(await run(replay)).toEqual({ count: events.length })
    await receiver.until(3 + events.length)
    const { secret: next } = await run(rotate)
    await sell()
    const last = (await receiver.until(4 + events.length)).at(-1) as never
    for (const one of [secret, next]) expect(verified(one, last)).toMatchObject({ type: 'payment.settled' })
    await owner.want(204, 'DELETE', `/webhooks/${id}`)
    await shell.leave()
  })

  test('the CSV of a period has its payments, with the outcome', async () => {
    await sell()
    const shell = terminal()
    const now = Math.floor(Date.now() / 1000)
    const period: [string, string][] = [
      ['1767225600', String(now - 3600)],
      ['1769904000', String(now + 3600)],
    ]
    await shell.type(replaced(csv, period))
    await shell.leave()
    const rows = readFileSync(join(directory, 'payments.csv'), 'utf8').trim().split('\r\n')
    expect(rows[0]?.split(',')).toContain('outcome')
    expect(rows[1]).toMatch(/^pay_.*,settled\b/)
  })
})

test('docs/guides/react-to-a-payment.md: the receiver prints the payment', async () => {
  const page = 'docs/guides/react-to-a-payment.md'
  const [start = '', buy = '', stop = '', create = ''] = blocksOf(page, 'sh')
  const [program = ''] = blocksOf(page, 'js')
  writeFileSync(join(directory, 'receiver.js'), program)
  const PORT = String(await freePort())
  const first = terminal({ PORT })
  first.enter(replaced(start, [['localhost:3000', `localhost:${PORT}`]]))
  await eventually(() => fetch(`http://localhost:${PORT}`), 'the receiver to listen')
  const second = terminal()
  // In a pipe, `listen` does not say when it is connected.
  await eventually(async () => {
    await second.type(buy)
    return first.stdout.includes('21 sat for One joke\n')
  }, 'the receiver to react')
  await first.prints(/"type":"payment\.settled".*"status":204/)
  first.interrupt()
  await first.type(stop)
  await first.leave()
  const webhook = JSON.parse(await second.type(create))
  expect(webhook.secret).toMatch(/^whsec_/)
  await owner.want(204, 'DELETE', `/webhooks/${webhook.id}`)
  await second.leave()
})

test('docs/guides/reconcile-your-books.md: after kill -9, the books agree with the CSV', async () => {
  const page = 'docs/guides/reconcile-your-books.md'
  const [keep = '', buy = '', compare = ''] = blocksOf(page, 'sh')
  const [program = ''] = blocksOf(page, 'js')
  const [output = ''] = blocksOf(page, '')
  writeFileSync(join(directory, 'books.mjs'), program)
  const accountId = (await server.newAccount()).id
  const reader = new Owner(server, await server.newKey(['nodes:write', 'gateway:write', 'events:read'], accountId))
  await reader.createReady({ name: 'shop' })
  const shell = terminal({ SERVICE_API_KEY: reader.key.key })
  await shell.type(keep)
  await shell.type(buy)
  const settled = async (): Promise<boolean> =>
    (await reader.want<{ events: unknown[] }>(200, 'GET', '/events?types=payment.settled')).events.length === 1
  await eventually(settled, 'the event')
  expect(await shell.type(compare)).toBe(output)
  await shell.leave()
})

test('cli/README.md: the commands do what they say', async () => {
  const seller = new Boltyard({ baseUrl: `${server.url}/v1`, apiKey: owner.key.key })
  const weather = paywall({ client: seller, nodeId: shop.node.id, amountSat: 10, description: 'Weather' })
  const documents = discovery({ title: 'Weather', routes: { 'GET /weather': weather } })
  const http = createServer((request, response) =>
    documents(request, response, () => void weather(request, response, () => response.end('Rain.'))),
  )
  await once(http.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => {
    http.closeAllConnections()
    http.close()
  })
  const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}`
  const receiver = await openReceiver()
  const [block = ''] = blocksOf('cli/README.md', 'sh')
  const [install, key, create = '', buy = '', check = '', listen = '', webhook = '', help = ''] = block.trim().split('\n')
  expect(install).toBe('npm install --global @boltyard/cli')

  const shell = terminal({ SERVICE_API_KEY: '' })
  await shell.type(replaced(key ?? '', [['…', `${owner.key.key} `]]))
  const own = (await owner.list()).length
  await owner.want(200, 'PATCH', `/nodes/${shop.node.id}`, { json: { name: 'seller' } })
  const { node } = JSON.parse(await shell.type(create))
  expect([node.status, (await owner.list()).length]).toEqual(['ready', own + 1])
  await fund(server, { node } as Created, 100_000)
  expect(await shell.type(replaced(buy, [['https://example.com', url]]))).toBe('Rain.')
  expect(JSON.parse(await shell.type(replaced(check, [['https://api.example.com', url]])))).toMatchObject({ findings: [] })
  const { id, ...created } = JSON.parse(await shell.type(webhook))
  expect(created).toMatchObject({ types: ['payment.*'], secret: expect.any(String) })
  await owner.want(204, 'DELETE', `/webhooks/${id}`)
  expect(await shell.type(help)).toContain('Usage')
  shell.enter(replaced(listen, [['http://localhost:3000/hook', receiver.url]]))
  await eventually(async () => {
    await sell()
    return receiver.received.length > 0
  }, 'an event')
  shell.interrupt()
  await shell.leave()
})

describe('the dashboard', () => {
  test('a webhook is created, and events are forwarded', async () => {
    const shell = terminal({ SERVICE_BASE_URL: '' })
    const { id, secret } = JSON.parse(await shell.type(createWebhookCurl(server.url)))
    expect(secret).toEqual(expect.any(String))
    await owner.want(204, 'DELETE', `/webhooks/${id}`)
    const receiver = await openReceiver()
    shell.enter(replaced(listenCli(server.url), [['http://localhost:3000/hook', receiver.url]]))
    await eventually(async () => {
      await sell()
      return receiver.received.length > 0
    }, 'an event')
    shell.interrupt()
    await shell.leave()
  })

  const hasPython = spawnSync('python3', ['--version']).status === 0
  test.each([
    ['curl', (code: string) => code],
    ['typescript', (code: string) => `node --input-type=module - <<'SCRIPT'\n${code}\nSCRIPT`],
    ...(hasPython ? [['python', (code: string) => `python3 - <<'SCRIPT'\n${code}\nSCRIPT`] as const] : []),
  ] as const)('“Try it” in %s: both requests work, whatever a person typed', async (language, program) => {
    const shell = terminal()
    const run = async (path: string, body: Parameters<typeof requestIn>[3]): Promise<any> => {
      const text = await shell.type(program(requestIn(language, server.url, path, body)))
      if (language !== 'curl') expect(text.slice(0, 2)).toBe('20')
      return JSON.parse(language === 'curl' ? text : text.slice(4))
    }
    const description = `It's "5" \\ $HOME \`id\` é`
    const terms = { nodeId: shop.node.id, amountSat: 5, description, resource: 'GET /report', protocol: 'mpp' }
    const payment = await run('/gateway/payments', terms)
    const credential = credentialOf(payment, await pay(server, payment))
    const expected = { nodeId: shop.node.id, resource: 'GET /report', minAmountSat: 5 }
    await untilSettled(owner, payment)
    const redemption = { credential, requestId: 'request-1', expect: expected }
    expect(await run(`/gateway/payments/${payment.id}/redeem`, redemption)).toMatchObject({
      id: payment.id,
      description,
      status: 'paid',
    })
    await shell.leave()
  })

  test('the operator’s commands: print the token, make one, invite someone', async () => {
    const file = join(directory, "operator's token")
    writeFileSync(file, server.operatorToken)
    const shell = terminal()
    const token = await shell.type(printToken(file))
    expect(token).toBe(`${server.operatorToken}\n`)
    expect(await shell.type(MAKE_TOKEN)).toMatch(/^[0-9a-f]{64}\n$/)
    expect(JSON.parse(await shell.type(`OPERATOR_TOKEN=${token}${inviteCurl(server.url)}`))).toMatchObject({
      url: expect.stringContaining(server.url),
    })
    await shell.leave()
  })
})
