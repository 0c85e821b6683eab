import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { beforeAll, describe, expect, test } from 'vitest'
import { Wire } from '../../sdk/test/wire.ts'
import { freezeHub, pidOf } from '../../server/test/support/nodes.ts'
import { NOWHERE } from '../../server/test/support/payments.ts'
import { eventually, PROCESS, type Server, startServer } from '../../server/test/support/server.ts'
import { Customer, inHome, onTerminal, ROOMY, run } from './harness.ts'

let server: Server
let ada: Customer
let shop: any

beforeAll(async () => {
  server = await startServer({ env: { ...ROOMY, NODE_PRICE_SAT_PER_DAY: '100' } })
  ada = await Customer.of(server)
  shop = (await ada.gets(['nodes', 'create', '--wait'])).node
})

const newWire = (): Promise<Wire> => new Wire(server.url).open()
const requestId = expect.stringMatching(/^[\w.-]+$/)

describe('exit codes, and JSON on stderr with code, message and requestId', () => {
  test('4: no key, an invalid key, or a key without the scope, which is named', async () => {
    const none = await run(['nodes', 'list'])
    expect([none.code, none.error().code]).toEqual([4, 'no_api_key'])
    const wrong = await new Customer(`${server.url}/v1`, 'byk_wrong').run(['nodes', 'list'])
    expect([wrong.code, wrong.error()]).toEqual([4, expect.objectContaining({ code: 'unauthorized', requestId, status: 401 })])
    expect(wrong.error().message).toContain('The API key is unknown, disabled or revoked.')
    const reader = await Customer.of(server, ['nodes:read'])
    const lacking = await reader.run(['nodes', 'create'])
    expect([lacking.code, lacking.error().message]).toEqual([4, 'This API key lacks the scope nodes:write. It has nodes:read.'])
    for (const { stdout, stderr } of [wrong, lacking]) expect(stdout + stderr).not.toContain(reader.env.SERVICE_API_KEY)
  })

  test('5: a node that does not exist or belongs to another account', async () => {
    const bob = await Customer.of(server)
    const { code, error } = await bob.run(['nodes', 'get', shop.id])
    expect([code, error()]).toEqual([
      5,
      expect.objectContaining({ code: 'node_not_found', requestId, message: expect.any(String) }),
    ])
  })

  test('2: input that the service rejects', async () => {
    const { code, error } = await ada.run(['nodes', 'rename', shop.id, 'a name that is too long'])
    expect([code, error()]).toEqual([2, expect.objectContaining({ code: 'bad_request', requestId })])
  })

  test('8: a state that does not allow the operation', async () => {
    const { code, error } = await ada.run(['nodes', 'start', shop.id])
    expect([code, error().code]).toEqual([8, 'invalid_node_state'])
  })

  test('8: a payment to a node that is not ready; the node is named', async () => {
    const wire = await newWire()
    wire.faults = [{ status: 400, body: '{"error":{"code":"invalid_node_state","message":"The node is stopped."}}' }]
    const create = ['payments', 'create', '--node', 'node_1', '--amount-sat', '1', '--description', 'x']
    const { code, error } = await ada.via(wire.baseUrl).run(create)
    expect([code, error().next]).toEqual([8, 'Check its status: boltyard nodes get node_1'])
  })

  test('7: no credit, with an invoice; once it is paid, the same command works', async () => {
    const account = await server.newAccount({ creditSat: 0 })
    const poor = await Customer.of(server, ['nodes:write'], account.id)
    // Retried, because the treasury node becomes ready only some time after the service.
    const refused = await eventually(async () => {
      const ended = await poor.run(['nodes', 'create'])
      if (!ended.error().topUp) throw new Error(ended.stderr)
      return ended
    }, 'a top-up invoice')
    expect([refused.code, refused.stdout, refused.error().code]).toEqual([7, '', 'insufficient_credit'])
    const { invoice } = refused.error().topUp
    expect(refused.error().next).toContain(invoice)
    await poor.gets(['sandbox', 'pay', invoice], { env: { DATA_DIR: server.dataDir } })
    const { node } = await eventually(() => poor.gets(['nodes', 'create']), 'the credit to come')
    await poor.gets(['nodes', 'delete', node.id, '--yes'])
  })

  test('6: a long rate limit fails; a short one is waited for', async () => {
    const wire = await newWire()
    const limited = (seconds: number) => ({
      status: 429,
      headers: { 'retry-after': String(seconds), 'x-request-id': 'limited-1' },
      body: '{"error":{"code":"rate_limited","message":"rate limit exceeded"}}',
    })
    wire.faults = [limited(57)]
    const { code, error } = await ada.via(wire.baseUrl).run(['nodes', 'list'])
    expect([code, error()]).toEqual([
      6,
      expect.objectContaining({ code: 'rate_limited', requestId: 'limited-1', retryAfterSeconds: 57 }),
    ])
    expect(wire.seen).toHaveLength(1)
    wire.faults = [limited(1)]
    const started = Date.now()
    await ada.via(wire.baseUrl).gets(['nodes', 'list'])
    expect(Date.now() - started).toBeGreaterThanOrEqual(1000)
  })

  test('6: a limit that does not say in seconds when it resets is retried', async () => {
    const wire = await newWire()
    const body = '{"error":{"code":"rate_limited","message":"rate limit exceeded"}}'
    wire.faults = [{ status: 429, headers: { 'retry-after': 'Fri, 31 Dec 1999 23:59:59 GMT' }, body }]
    await ada.via(wire.baseUrl).gets(['nodes', 'list'])
    expect(wire.seen).toHaveLength(2)
  })

  test('6: by the service’s own limit', async () => {
    const small = await startServer({ env: { ROLE: 'api', RATE_LIMIT_MAX: '3', RATE_LIMIT_WINDOW_SECONDS: '3600' } })
    const bob = await Customer.of(small)
    for (let count = 0; count < 3; count++) await bob.gets(['nodes', 'list'])
    expect(await bob.run(['nodes', 'list'])).toMatchObject({ code: 6, stdout: '' })
  })

  test('3: nothing is listening, and nothing was sent', async () => {
    const { code, error } = await ada
      .via(`${NOWHERE}/v1`)
      .run(['nodes', 'create', '--credentials-file', inHome('unreached.json')])
    expect([code, error().code, error().outcome]).toEqual([3, 'connection_failed', undefined])
  })

  test('D5: a wrong key, an unknown node and an unreachable service each say what to change', async () => {
    const baseUrl = `${NOWHERE}/v1`
    const nobody = (await ada.via(baseUrl).run(['nodes', 'list'])).error()
    expect(nobody.message).toMatch(/could not be reached \(ECONNREFUSED\)\. Is it running, and is the base URL right\?/)
    expect(nobody.next).toContain(baseUrl)
    const wrong = (await new Customer(`${server.url}/v1`, 'byk_wrong').run(['nodes', 'list'])).error()
    expect([wrong.message, wrong.next]).toEqual([expect.stringContaining('API key'), expect.stringContaining(server.url)])
    const unknown = (await ada.run(['nodes', 'get', 'node_typo'])).error()
    expect([unknown.message, unknown.next]).toEqual([
      expect.stringContaining('Check its id'),
      expect.stringContaining('nodes list'),
    ])
  })

  test('D15: 2: a base URL without /v1, with the right one as a suggestion', async () => {
    const { code, error } = await ada.via(server.url).run(['nodes', 'list'])
    expect([code, error().message]).toEqual([2, `The base URL must end in /v1. Did you mean ${server.url}/v1?`])
  })

  test('D15: BOLTYARD_API_KEY and BOLTYARD_BASE_URL are used if the others are not set', async () => {
    const { SERVICE_API_KEY: BOLTYARD_API_KEY, SERVICE_BASE_URL: BOLTYARD_BASE_URL } = ada.env
    expect(await run(['key'], { env: { BOLTYARD_API_KEY, BOLTYARD_BASE_URL } })).toMatchObject({ code: 0, stderr: '' })
  })

  test('3: a slow service, a node that is not ready (502), and --timeout', async () => {
    const wire = await newWire()
    wire.faults = ['swallow', 'swallow']
    const slow = await ada.via(wire.baseUrl).run(['nodes', 'list', '--timeout', '1'])
    expect([slow.code, slow.error()]).toEqual([
      3,
      expect.objectContaining({ code: 'timeout', message: 'The command took longer than 1 s.' }),
    ])

    const charge = ['payments', 'create', '--amount-sat', '1', '--description', 'x', '--node']
    wire.faults = ['swallow']
    const hanging = await ada.via(wire.baseUrl).run([...charge, shop.id, '--timeout', '10'])
    expect([hanging.code, hanging.error().outcome]).toEqual([3, 'unknown'])

    const stopped = (await ada.gets(['nodes', 'create', '--wait'])).node
    await ada.gets(['nodes', 'stop', stopped.id])
    const away = await ada.run([...charge, stopped.id])
    expect([away.code, away.error()]).toEqual([
      3,
      expect.objectContaining({ code: 'payment_service_unavailable', requestId, status: 502 }),
    ])
  })

  test('1 and 3: a response that does not come from the API', async () => {
    const wire = await newWire()
    const page = (status: number) => ({ status, body: '<html>\x1b]0;owned\x07' })
    wire.faults = [page(200)]
    expect((await ada.via(wire.baseUrl).run(['nodes', 'list'])).code).toBe(1)
    wire.faults = [page(502), page(502), page(502), page(502)]
    expect((await ada.via(wire.baseUrl).run(['nodes', 'list'])).code).toBe(3)
    for (const body of ['null', '[]']) {
      wire.faults = [{ status: 200, body }]
      const sandbox = await ada.via(wire.baseUrl).run(['sandbox', 'pay', 'lnbcrt1'], { env: { DATA_DIR: server.dataDir } })
      expect([sandbox.code, sandbox.error().code]).toEqual([1, 'unexpected_answer'])
    }
  })

  test('a 502 from a proxy leaves the outcome unknown; a 502 from the service does not', async () => {
    const wire = await newWire()
    const [file, page] = [inHome('between.json'), { status: 502, body: '<html>' }]
    wire.faults = ['lose answer', page, page, page]
    const create = ['nodes', 'create', '--credentials-file', file]
    const lost = await ada.via(wire.baseUrl).run(create)
    expect(lost.error()).toMatchObject({ code: 'unexpected_answer', outcome: 'unknown' })
    // With the API key, the idempotency key would retrieve the seed.
    expect(lost.stderr).not.toContain(JSON.parse(readFileSync(file, 'utf8')).idempotencyKey)
    const before = (await ada.gets(['nodes', 'list'])).nodes
    const { node } = await ada.gets(create)
    expect(before.map((one: any) => one.id)).toContain(node.id)
    const own = {
      ...page,
      headers: { 'x-request-id': 'r' },
      body: '{"error":{"code":"payment_service_unavailable","message":"x"}}',
    }
    wire.faults = [own, own, own, own]
    expect(
      (await ada.via(wire.baseUrl).run(['nodes', 'create', '--credentials-file', inHome('own.json')])).error().outcome,
    ).toBeUndefined()
    expect(existsSync(inHome('own.json'))).toBe(false)
    const body = '{"error":{"code":"payment_service_unavailable","message":"x","reason":"outcome_unknown"}}'
    wire.faults = [{ ...own, body }]
    const fund = ['sandbox', 'fund', shop.id, '1000']
    const unclear = (await ada.via(wire.baseUrl).run(fund, { env: { DATA_DIR: server.dataDir } })).error()
    expect([unclear.outcome, unclear.next]).toEqual(['unknown', expect.stringContaining('The node may have been funded.')])
  })
})

describe('a refusal after a lost response says nothing about the lost request', () => {
  const refused = (status: number, code: string) => ({
    status,
    headers: { 'x-request-id': 'r', 'retry-after': '60' },
    body: JSON.stringify({ error: { code, message: 'x' } }),
  })

  test.each([
    ['429', refused(429, 'rate_limited')],
    ['401', refused(401, 'unauthorized')],
    ['409', refused(409, 'idempotency_conflict')],
    ['a 502 of the service', refused(502, 'payment_service_unavailable')],
    ['a proxy’s 403', { status: 403, body: '<html>' }],
    ['a proxy’s 404', { status: 404, body: '{"message":"no route"}' }],
  ])('%s: the file with the idempotency key is kept, and completes with the credentials', async (name, fault) => {
    const wire = await newWire()
    const create = ['nodes', 'create', '--credentials-file', inHome(`refused ${name}.json`)]
    wire.faults = ['lose answer', fault, fault, fault, fault]
    const { error } = await ada.via(wire.baseUrl).run(create)
    expect([error().outcome, error().next]).toEqual(['unknown', expect.stringContaining('The node may have been created.')])
    const before = (await ada.gets(['nodes', 'list'])).nodes
    const { node } = await ada.gets(create)
    expect(before.map((one: any) => one.id)).toContain(node.id)
    await ada.gets(['nodes', 'delete', node.id, '--yes'])
  })

  test('without a lost response, nothing is unknown, unless a proxy refused', async () => {
    const wire = await newWire()
    const create = (name: string): string[] => ['nodes', 'create', '--credentials-file', inHome(name)]
    wire.faults = [refused(429, 'rate_limited')]
    expect((await ada.via(wire.baseUrl).run(create('clear.json'))).error().outcome).toBeUndefined()
    expect(existsSync(inHome('clear.json'))).toBe(false)
    wire.faults = [{ status: 403, body: '<html>' }]
    expect((await ada.via(wire.baseUrl).run(create('proxy.json'))).error().outcome).toBe('unknown')
  })

  test('payments redeem: its generated request id is printed', async () => {
    const wire = await newWire()
    wire.faults = ['lose answer', refused(429, 'rate_limited')]
    const redeem = ['payments', 'redeem', 'pay_00000000000000000000']
    const { error } = await ada.via(wire.baseUrl).run(redeem, { input: 'L402 AgE=:00' })
    const { requestId } = JSON.parse(wire.seen[0]?.body ?? '{}')
    expect([error().outcome, error().next]).toEqual(['unknown', expect.stringContaining(`--request-id ${requestId}.`)])
  })

  test('payments redeem: the error’s requestId is the service’s, not that of the redemption', async () => {
    const wire = await newWire()
    wire.faults = Array(4).fill(refused(503, 'service_unavailable'))
    const { error } = await ada.via(wire.baseUrl).run(['payments', 'redeem', 'pay_1'], { input: 'L402 AgE=:00' })
    expect([error().outcome, error().requestId]).toEqual(['unknown', 'r'])
  })
})

describe('the service is restarted during a call', () => {
  test('a creation and a start succeed: one node, and it is ready', async () => {
    const second = await startServer({ command: PROCESS, env: ROOMY })
    const bob = await Customer.of(second)
    const wire = await new Wire(second.url).open()
    // The service is frozen with an unanswered request and then killed, so that the outcome is unknown.
    const interrupted = async (args: string[]): Promise<any> => {
      process.kill(second.child.pid ?? 0, 'SIGSTOP')
      const { ended } = bob.via(wire.baseUrl).start(args)
      await eventually(() => wire.underWay === 1, 'the request')
      // The wire holds requests until the service is back. Otherwise a slow start could outlast the command's retries.
      wire.ready = second.restart('SIGKILL')
      await wire.ready
      const { code, stderr, json } = await ended
      expect([code, stderr]).toEqual([0, ''])
      return json()
    }
    const { node, credentials } = await interrupted(['nodes', 'create'])
    expect(credentials.seed).toMatch(/\w/)
    expect((await bob.gets(['nodes', 'list'])).nodes).toHaveLength(1)
    await bob.gets(['nodes', 'wait', node.id])
    await bob.gets(['nodes', 'stop', node.id])
    expect(await interrupted(['nodes', 'start', node.id])).toMatchObject({ id: node.id, status: 'ready' })
  })

  test('a restart with a lost response is not retried; the message says how to check', async () => {
    const wire = await newWire()
    wire.faults = ['lose answer']
    const { code, error } = await ada.via(wire.baseUrl).run(['nodes', 'restart', shop.id])
    expect([code, error()]).toEqual([3, expect.objectContaining({ code: 'uncertain_outcome', outcome: 'unknown' })])
    expect(error().next).toContain(`boltyard nodes get ${shop.id}`)
    expect(wire.seen.filter(({ method }) => method === 'POST')).toHaveLength(1)
    await ada.gets(['nodes', 'wait', shop.id])
  })
})

describe('Ctrl-C', () => {
  /** Whether the process is polling its standard input. */
  const waitsForInput = (pid = 0): boolean =>
    readdirSync(`/proc/${pid}/fdinfo`).some((name) => /^tfd: +0 /m.test(readFileSync(`/proc/${pid}/fdinfo/${name}`, 'utf8')))

  test('before any response: 130, and how to retry; the retry returns the same node', async () => {
    const wire = await newWire()
    wire.faults = ['lose answer', 'swallow']
    const before = (await ada.gets(['nodes', 'list'])).nodes.length
    const { child, ended } = ada.via(wire.baseUrl).start(['nodes', 'create', '--name', 'cut'])
    await eventually(() => wire.seen.length === 2, 'the second attempt')
    child.kill('SIGINT')
    const { code, stdout, error } = await ended
    expect([code, stdout, error().code, error().outcome]).toEqual([130, '', 'interrupted', 'unknown'])
    const [, key = ''] = /--idempotency-key (\S+)/.exec(error().next) ?? []
    expect((await ada.gets(['nodes', 'create', '--name', 'cut', '--idempotency-key', key])).credentials.seed).toMatch(/\w/)
    expect((await ada.gets(['nodes', 'list'])).nodes).toHaveLength(before + 1)
  })

  test('during a read: 130, and nothing to check', async () => {
    const wire = await newWire()
    wire.faults = ['swallow']
    const { child, ended } = ada.via(wire.baseUrl).start(['nodes', 'list'])
    await eventually(() => wire.seen.length === 1, 'the request')
    child.kill('SIGINT')
    expect((await ended).stderr).toBe('{"error":{"code":"interrupted","message":"Interrupted."}}\n')
    expect((await ended).code).toBe(130)
  })

  test('while a credential is awaited on standard input', async () => {
    const { child, ended } = ada.start(['payments', 'validate'], { input: null })
    await eventually(() => waitsForInput(child.pid), 'it to wait for the credential')
    child.kill('SIGINT')
    expect((await ended).code).toBe(130)
  })

  test('during --wait the credentials are not lost with it', async () => {
    const wire = await newWire()
    wire.faults = ['pass', 'swallow']
    const { child, ended } = ada.via(wire.baseUrl).start(['nodes', 'create', '--wait'])
    await eventually(() => wire.seen.length === 2, 'the wait')
    child.kill('SIGINT')
    const { code, json, error } = await ended
    expect([code, error().outcome]).toEqual([130, undefined])
    expect(json()).toMatchObject({ node: { status: 'provisioning' }, credentials: { seed: expect.any(String) } })
  })

  test('SIGTERM is 143; the service finishes a start that was in progress', async () => {
    const { node } = await ada.gets(['nodes', 'create', '--wait'])
    await ada.gets(['nodes', 'stop', node.id])
    // Without the hub, the node does not become ready.
    const hub = freezeHub(server)
    const { child, ended } = ada.start(['nodes', 'start', node.id])
    await eventually(() => pidOf(server, node), 'the start').finally(() => child.kill('SIGTERM'))
    const { code, stderr } = await ended.finally(hub.thaw)
    expect(code).toBe(143)
    expect(JSON.parse(stderr).error.next).toContain(`boltyard nodes get ${node.id}`)
    await eventually(async () => (await ada.gets(['nodes', 'get', node.id])).status === 'ready', 'the start to be finished')
  })
})

onTerminal('failures', () => {
  test('what, why, what next, and the request id', async () => {
    const { code, plain } = await ada.sees(['nodes', 'start', shop.id])
    expect(code).toBe(8)
    expect(plain).toMatch(
      new RegExp(`^boltyard: The node is .*\\n  Check its status: boltyard nodes get ${shop.id}\\n  request id [\\w.-]+\\n$`),
    )
  })

  test('missing credit shows the invoice', async () => {
    const account = await server.newAccount({ creditSat: 0 })
    const poor = await Customer.of(server, ['nodes:write'], account.id)
    const { code, plain } = await poor.sees(['nodes', 'create'])
    expect(code).toBe(7)
    expect(plain).toMatch(/Pay this invoice \(\d+ sat\) .*:\n {2}lnbcrt\w+\n/)
  })

  test('Ctrl-C at the keyboard: 130, the spinner is gone, and how to repeat it', async () => {
    const wire = await newWire()
    wire.faults = ['swallow']
    const terminal = ada.via(wire.baseUrl).terminal(['nodes', 'create'])
    await terminal.shows(/Creating a node/)
    await eventually(() => wire.seen.length === 1, 'the request')
    terminal.type('\x03')
    expect(await terminal.exited).toBe(130)
    expect(terminal.plain).toMatch(
      /boltyard: Interrupted\.\n {2}The node may have been created\..*\n {2}boltyard nodes create --idempotency-key \S+/,
    )
    expect(terminal.screen).toContain('\r\x1b[K\x1b[31mboltyard:')
  })

  test('a second Ctrl-C exits immediately', async () => {
    const wire = await newWire()
    wire.faults = ['swallow']
    const terminal = ada.via(wire.baseUrl).terminal(['nodes', 'list', '--timeout', '60'])
    await eventually(() => wire.seen.length === 1, 'the request')
    terminal.type('\x03\x03')
    expect(await terminal.exited).toBe(130)
  })

  test('control characters from outside never reach the terminal', async () => {
    const wire = await newWire()
    const evil = {
      id: 'x',
      name: '\x1b]0;owned\x07\u202e',
      status: 'ready',
      endpointUrl: 'http://x/\x1b[2J',
      createdAt: 1,
      failureMessage: null,
      updateStatus: null,
    }
    wire.faults = [
      { status: 200, body: JSON.stringify({ nodes: [evil] }) },
      { status: 400, body: JSON.stringify({ error: { code: 'bad_request', message: '\x1b]0;owned\x07' } }) },
    ]
    for (const { screen } of [
      await ada.via(wire.baseUrl).sees(['nodes', 'list']),
      await ada.via(wire.baseUrl).sees(['nodes', 'list']),
    ]) {
      for (const evil of ['\x1b]', '\x1b[2J', '\x07', '\u202e']) expect(screen).not.toContain(evil)
      expect(screen).toContain('\ufffd')
    }
  })
})

describe('output that cannot be written', () => {
  const intoFull = { stdout: '', code: 1 }

  test.each(['nodes list', '--version', '--help'])('D15: %s to a full disk is reported as an error', async (words) => {
    const ended = await ada.run(words.split(' '), { redirect: '> /dev/full' })
    expect(ended).toMatchObject(intoFull)
    expect(ended.error()).toMatchObject({
      code: 'output_failed',
      message: 'The output could not be written: the disk is full.',
    })
  })

  test.each(['>&-', '> /dev/null', '> /dev/full'])(
    'D15: credentials that could not be written (%s) can be retrieved again',
    async (redirect) => {
      const lost = await ada.run(['nodes', 'create'], { redirect })
      expect([lost.code, lost.error().code]).toEqual([1, 'output_failed'])
      const [, nodeId, key = ''] = /credentials of (node_\w+) .*--idempotency-key (\S+)/.exec(lost.error().next) ?? []
      const found = await ada.gets(['nodes', 'create', '--idempotency-key', key])
      expect(found).toMatchObject({ node: { id: nodeId }, credentials: { seed: expect.any(String) } })
      await ada.gets(['nodes', 'delete', found.node.id, '--yes'])
    },
  )

  test('other output may be discarded silently, also about a node whose credentials are in a file', async () => {
    expect(await ada.run(['nodes', 'list'], { redirect: '> /dev/null' })).toMatchObject({ code: 0, stderr: '' })
    const args = ['nodes', 'create', '--credentials-file', inHome('kept.json')]
    expect(await ada.run(args, { redirect: '> /dev/null' })).toMatchObject({ code: 0, stderr: '' })
  })
})
