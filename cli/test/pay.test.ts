import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { Wire } from '../../sdk/test/wire.ts'
import { newMerchant } from '../../server/test/support/gateway.ts'
import { balanceOf, type Created, fund } from '../../server/test/support/nodes.ts'
import { NOWHERE } from '../../server/test/support/payments.ts'
import { eventually, type Server, startServer } from '../../server/test/support/server.ts'
import { home, inHome, inTerminal, onTerminal, ROOMY, run, start, Terminal } from './harness.ts'
import { GOODS, Merchant } from './merchant.ts'

let server: Server
let shop: Merchant
let till: Created
let purse: Created
const FILE = inHome('purse.json')
/** phoenixd's fee is 4 sat + 0.4 %, which is a whole number of satoshis for this price. */
const [PRICE, FEE] = [250, 5]
const COST = PRICE + FEE

beforeAll(async () => {
  server = await startServer({ env: { ...ROOMY, TRUST_PROXY: '1' } })
  const [seller, buyer] = await Promise.all([newMerchant(server), newMerchant(server)])
  ;[till, purse] = await Promise.all([seller.createReady(), buyer.createReady()])
  await fund(server, purse, 1_000_000)
  writeFileSync(FILE, JSON.stringify({ nodeId: purse.node.id, endpointUrl: purse.node.endpointUrl, ...purse.credentials }))
  shop = await new Merchant(seller, till.node.id).open()
})

let money: [purse: number, till: number]
beforeEach(async () => {
  money = await balances()
  Object.assign(shop, { moods: [], isStubborn: false, asked: 0 })
  shop.visits.length = 0
})

const balances = (): Promise<[number, number]> => Promise.all([balanceOf(purse), balanceOf(till)])
async function moved(): Promise<{ spent: number; earned: number }> {
  const [spent, earned] = await balances()
  return { spent: money[0] - spent, earned: earned - money[1] }
}
const ONCE = { spent: COST, earned: PRICE }
const NOTHING = { spent: 0, earned: 0 }
const pays = (path: string, ...more: string[]): string[] => ['pay', shop.url(path), '--password-file', FILE, ...more]
const kept = (): string[] => readdirSync(`${home}/.local/state/boltyard/paid`)
const lastCredential = (): string => shop.visits.at(-1)?.authorization ?? ''

describe('fetch, pay, fetch again', () => {
  test.each(['/mpp', '/l402', '/lsat', '/l402+mpp', '/mpp+l402'])(
    '%s: the body on stdout, price and receipt on stderr, paid once, nothing left behind',
    async (path) => {
      const { code, stdout, stderr } = await run(pays(path))
      expect([code, stdout]).toEqual([0, GOODS])
      expect(await moved()).toEqual(ONCE)
      const told = JSON.parse(stderr)
      expect(told.paid).toEqual({ amountSat: PRICE, feeSat: FEE, paymentHash: expect.stringMatching(/^[0-9a-f]{64}$/) })
      if (path.startsWith('/mpp')) expect(told.receipt).toMatchObject({ status: 'success', reference: told.paid.paymentHash })
      expect(lastCredential()).toMatch(path.startsWith('/mpp') ? /^Payment / : path === '/lsat' ? /^LSAT / : /^L402 /)
      expect(stdout + stderr).not.toContain(lastCredential())
      expect(kept()).toEqual([])
    },
  )

  test('a free resource costs nothing and needs no wallet', async () => {
    expect(await run(['pay', shop.url('/free')])).toMatchObject({ code: 0, stdout: GOODS, stderr: '' })
    expect(await moved()).toEqual(NOTHING)
  })

  test.each([
    [404, 5],
    [500, 3],
    [403, 1],
    [429, 6],
    [401, 1],
  ])('HTTP %i without a challenge is exit %i, and no data is printed', async (status, code) => {
    const ended = await run(pays(`/${status}`))
    expect([ended.code, ended.stdout, ended.error().message]).toEqual([code, '', `The server returned HTTP ${status}. so it is`])
  })

  test('a redirect is followed before anything is paid', async () => {
    expect(await run(pays('/old'))).toMatchObject({ code: 0, stdout: GOODS })
    expect(shop.visits.map(({ path }) => path)).toEqual(['/old', '/mpp', '/mpp'])
  })

  test('method, headers and body arrive both times, and the response is written to a file', async () => {
    writeFileSync(inHome('body'), 'Where?')
    writeFileSync(inHome('headers'), 'X-Test: from a file\n')
    const output = inHome('answer')
    const { code, stdout } = await run(
      pays('/mpp', '--data-file', inHome('body'), '--method', 'put', '--header', `@${inHome('headers')}`, '--output', output),
    )
    expect([code, stdout, readFileSync(output, 'utf8')]).toEqual([0, '', GOODS])
    const visit = { method: 'PUT', body: 'Where?', header: 'from a file' }
    expect(shop.visits).toMatchObject([visit, visit])
  })

  test('the password alone, with the node’s address; from stdin too', async () => {
    const args = ['pay', shop.url('/l402'), '--node-url', `${purse.node.endpointUrl}/`]
    writeFileSync(inHome('password'), `${purse.credentials.password}\n`)
    expect((await run([...args, '--password-file', inHome('password')])).code).toBe(0)
    expect((await run([...args, '--password-file', '-'], { input: purse.credentials.password })).code).toBe(0)
    expect(await moved()).toEqual({ spent: 2 * COST, earned: 2 * PRICE })
  })
})

describe('nothing is paid', () => {
  const refused = async (args: string[]): Promise<any> => {
    const ended = await run(args)
    expect(ended.stdout).toBe('')
    expect(await moved()).toEqual(NOTHING)
    expect(shop.visits.filter(({ authorization }) => authorization !== undefined)).toEqual([])
    return { exit: ended.code, ...ended.error() }
  }

  test('above --max-sat: exit 2, with the price', async () => {
    expect(await refused(pays('/mpp', '--max-sat', '249'))).toMatchObject({
      exit: 2,
      code: 'too_expensive',
      amountSat: PRICE,
      maxSat: 249,
    })
    expect(await refused(pays('/l402?sat=1001'))).toMatchObject({ exit: 2, code: 'too_expensive', amountSat: 1001, maxSat: 1000 })
    expect(await refused(pays('/mpp', '--max-sat', '0'))).toMatchObject({ exit: 2 })
  })

  test('without a password file, with the restricted password, with a wrong one', async () => {
    expect(await refused(['pay', shop.url('/mpp')])).toMatchObject({ exit: 2 })
    for (const password of [purse.credentials.restrictedPassword, 'wrong']) {
      writeFileSync(inHome('poor'), password)
      const args = ['pay', shop.url('/mpp'), '--node-url', purse.node.endpointUrl, '--password-file', inHome('poor')]
      expect(await refused(args)).toMatchObject({ exit: 4, code: 'node_password' })
    }
    expect(kept()).toEqual([])
  })

  test('without the money', async () => {
    expect(await refused(pays('/mpp?sat=5000000', '--max-sat', '9000000'))).toMatchObject({ exit: 1, code: 'payment_failed' })
    expect(kept()).toEqual([])
  })

  test('if the credential could not be stored', async () => {
    writeFileSync(inHome('taken'), 'something')
    expect(await refused(pays('/mpp', '--credential-file', inHome('taken')))).toMatchObject({ exit: 2 })
    const ended = await run(pays('/mpp'), { env: { XDG_STATE_HOME: '/dev/null' } })
    expect([ended.code, await moved()]).toEqual([2, NOTHING])
  })

  test('if the node is unreachable', async () => {
    expect(await refused([...pays('/mpp'), '--node-url', `${NOWHERE}/n/x`])).toMatchObject({
      exit: 3,
      code: 'node_unreachable',
    })
  })
})

describe('paid at most once in a run', () => {
  test('a server that keeps asking for payment is paid once; the message says how to present the same credential', async () => {
    Object.assign(shop, { moods: ['deaf'], isStubborn: true })
    const { code, stdout, stderr, error } = await run(pays('/mpp'))
    expect([code, stdout, error().code]).toEqual([8, '', 'paid_again_refused'])
    expect(await moved()).toEqual(ONCE)
    expect(stderr).not.toContain(lastCredential().split(' ')[1])
    const { credentialFile } = error()
    expect(JSON.parse(readFileSync(credentialFile, 'utf8')).credential).toBe(lastCredential())
    expect(error().next).toContain(`boltyard pay ${shop.url('/mpp')} --credential-file ${credentialFile}`)
    expect(statSync(credentialFile).mode & 0o777).toBe(0o600)
    shop.moods = []
    expect(await run(pays('/mpp', '--credential-file', credentialFile))).toMatchObject({ code: 0, stdout: GOODS })
    expect(await moved()).toEqual(ONCE)
  })

  test('"not yet" (503) is retried after the time it names', async () => {
    shop.moods = ['busy', 'busy']
    const started = Date.now()
    expect(await run(pays('/l402'))).toMatchObject({ code: 0, stdout: GOODS })
    expect(Date.now() - started).toBeGreaterThanOrEqual(2_000)
    expect(new Set(shop.visits.slice(1).map(({ authorization }) => authorization)).size).toBe(1)
    expect(await moved()).toEqual(ONCE)
  })

  test.each<[Merchant['moods'][number], number]>([
    ['broken', 3],
    ['moved', 1],
    ['cut off', 3],
  ])('a server that is %s after the payment: how to present the credential again, which then delivers', async (mood, exit) => {
    shop.moods = [mood]
    const { code, error } = await run(pays('/l402?sat=250&q=1'))
    expect(code).toBe(exit)
    expect(error().next).toContain(`boltyard pay '${shop.url('/l402?sat=250&q=1')}' --credential-file /`)
    expect(await run(pays('/l402', '--credential-file', error().credentialFile))).toMatchObject({ code: 0, stdout: GOODS })
    expect(await moved()).toEqual(ONCE)
  })

  test('a server that closes the connection is asked again with the same credential', async () => {
    shop.moods = ['rude', 'rude']
    expect(await run(pays('/mpp'))).toMatchObject({ code: 0, stdout: GOODS })
    expect(await moved()).toEqual(ONCE)
  })
})

describe('--credential-file', () => {
  test('L402: paid once, used until it expires', async () => {
    const file = inHome('feed.json')
    for (let round = 0; round < 3; round++)
      expect(await run(pays('/l402', '--credential-file', file))).toMatchObject({ code: 0, stdout: GOODS })
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(await moved()).toEqual(ONCE)
  })

  test('MPP is delivered once; after that, nothing is paid again silently', async () => {
    const file = inHome('once.json')
    expect((await run(pays('/mpp', '--credential-file', file))).code).toBe(0)
    const { code, error } = await run(pays('/mpp', '--credential-file', file))
    expect([code, error().code]).toEqual([8, 'credential_refused'])
    expect(error().next).toContain('keep the file and ask the seller')
    expect(await moved()).toEqual(ONCE)
  })

  test('is not sent to any other server', async () => {
    const other = await new Merchant(await newMerchant(server), till.node.id).open()
    const { code } = await run(['pay', other.url('/l402'), '--password-file', FILE, '--credential-file', inHome('feed.json')])
    expect([code, other.visits]).toEqual([2, []])
  })
})

describe('the response to the payment is lost', () => {
  let wire: Wire
  const throughWire = (path: string, ...more: string[]): string[] => {
    const url = `${wire.baseUrl.replace(/\/v1$/, '')}/n/${purse.node.id}`
    return [...pays(path, ...more), '--node-url', url]
  }
  beforeEach(async () => {
    wire = await new Wire(server.url).open()
  })

  test('the node is asked for the outcome, and nothing is paid twice', async () => {
    wire.faults = ['pass', 'lose answer', { status: 502 }, 'cut']
    expect(await run(throughWire('/mpp'))).toMatchObject({ code: 0, stdout: GOODS })
    expect(await moved()).toEqual(ONCE)
    const [before, payment, ...others] = wire.seen.map(({ method, path }) => `${method} ${path.split('/')[3]}`)
    expect([before, payment, new Set(others), wire.faults]).toEqual([
      'GET payments',
      'POST payinvoice',
      new Set(['GET payments']),
      [],
    ])
  })

  test('it never arrived: unknown, because it might still be on its way; the same invoice is paid later, once', async () => {
    wire.faults = ['pass', 'cut']
    const { code, error } = await run(throughWire('/mpp'))
    expect([code, error().code, error().outcome, await moved()]).toEqual([3, 'payment_unknown', 'unknown', NOTHING])
    expect(wire.seen.filter(({ method }) => method === 'POST')).toHaveLength(1)
    const again = await run(throughWire('/mpp', '--credential-file', error().credentialFile))
    expect([again.code, again.stdout, await moved(), shop.asked]).toEqual([0, GOODS, ONCE, 1])
  })

  test('no outcome within the timeout: unknown; the same purchase is completed later and paid once', async () => {
    wire.faults = ['pass', 'lose answer', ...Array(50).fill({ status: 502 })]
    const { code, error } = await run(throughWire('/mpp', '--timeout', '12'))
    expect([code, error().outcome]).toEqual([3, 'unknown'])
    wire.faults = []
    const again = await run(throughWire('/mpp', '--credential-file', error().credentialFile))
    expect([again.code, again.stdout, await moved()]).toEqual([0, GOODS, ONCE])
  })

  test.each(['SIGKILL', 'SIGINT'] as const)(
    '%s while paying: the file is enough to complete the purchase, paid once',
    async (signal) => {
      const file = inHome(`mid-${signal}.json`)
      wire.faults = ['pass', 'lose answer', ...Array(10).fill('swallow')]
      const { child, ended } = start(throughWire('/l402', '--credential-file', file))
      await eventually(() => wire.seen.length >= 3, 'the question to the node')
      child.kill(signal)
      const { code, stderr } = await ended
      wire.faults = []
      if (signal === 'SIGINT') {
        expect([code, JSON.parse(stderr).error.outcome]).toEqual([130, 'unknown'])
        expect(JSON.parse(stderr).error.next).toContain(`--credential-file ${file}`)
      }
      expect(JSON.parse(readFileSync(file, 'utf8')).credential).toBeUndefined()
      expect(await run(pays('/l402', '--credential-file', file))).toMatchObject({ code: 2 })
      expect(await run(throughWire('/l402', '--credential-file', file))).toMatchObject({ code: 0, stdout: GOODS })
      expect(await moved()).toEqual(ONCE)
      expect(shop.asked).toBe(1)
    },
  )

  test('killed before the payment reached the node: the same invoice is paid, not a second one', async () => {
    const file = inHome('before.json')
    wire.faults = ['pass', 'swallow']
    const { child, ended } = start(throughWire('/l402', '--credential-file', file))
    await eventually(() => wire.seen.length === 2, 'the payment')
    child.kill('SIGKILL')
    await ended
    expect(await run(throughWire('/l402', '--credential-file', file))).toMatchObject({ code: 0, stdout: GOODS })
    expect([await moved(), shop.asked]).toEqual([ONCE, 1])
  })
})

onTerminal('pay', () => {
  test('the body, then what it cost; never the credential', async () => {
    const { code, plain } = await inTerminal(pays('/mpp'))
    expect(code).toBe(0)
    expect(plain).toContain(`${GOODS}\npaid     250 sat + 5 sat fee\npayment  `)
    expect(plain).not.toContain(lastCredential().split(' ')[1])
  })

  test('too expensive: one sentence', async () => {
    const { code, plain } = await inTerminal(pays('/mpp?sat=12345'))
    expect([code, plain]).toEqual([
      2,
      'boltyard: The price is 12\u2009345 sat, but --max-sat is 1000. Nothing was paid.\n  To accept the price: --max-sat 12345\n',
    ])
  })

  test('Ctrl-C while the server is busy: how to present the paid credential', async () => {
    Object.assign(shop, { moods: ['busy'], isStubborn: true })
    const terminal = new Terminal(pays('/mpp'))
    await eventually(() => shop.visits.length >= 3, 'the second presentation')
    terminal.type('\x03')
    expect(await terminal.exited).toBe(130)
    expect(terminal.plain).toMatch(
      /boltyard: Interrupted\.\n {2}To present the same credential again without paying:\n {2}boltyard pay /,
    )
    expect(await moved()).toEqual(ONCE)
  })
})
