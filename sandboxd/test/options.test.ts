import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseConf } from '../src/conf-file.ts'
import { type Options, readOptions } from '../src/options.ts'
import { basic, confText, Daemon, freePort, readText, send, TestNode, temporaryDirectory } from './harness.ts'

const linesOf = (text: string): string[] => text.split('\n').filter((line) => line !== '')

/** The parsed options for a command line and the text of a phoenix.conf. */
function optionsOf(args: string[], conf = ''): Options {
  const dataDir = temporaryDirectory()
  writeFileSync(join(dataDir, 'phoenix.conf'), conf)
  return readOptions(args, { PHOENIX_DATADIR: dataDir })
}

async function expectRefusal(args: string[], conf: string, message: string | RegExp): Promise<void> {
  const dataDir = temporaryDirectory()
  if (conf) writeFileSync(join(dataDir, 'phoenix.conf'), conf)
  const daemon = new Daemon({ args, env: { PHOENIX_DATADIR: dataDir } })
  const started = daemon.printed(/datadir: /).then(
    () => 'it started',
    () => daemon.exited,
  )
  const end = await Promise.race([daemon.exited, started])
  await daemon.kill()
  expect(end).toEqual({ code: 1, signal: null })
  const errors = linesOf(daemon.stderr).filter((line) => line.startsWith('Error: '))
  expect(errors).toHaveLength(1)
  expect(errors[0]?.slice('Error: '.length)).toMatch(message)
  expect(linesOf(daemon.stderr).filter((line) => !/^(Usage|Error): /.test(line))).toEqual([])
  expect(daemon.stdout).toBe('')
}

/** Every phoenixd option that takes a value, with a valid value and its result. */
const GOOD: { name: string; value: string; comesTo: Partial<Options> }[] = [
  { name: 'chain', value: 'regtest', comesTo: {} },
  { name: 'mempool-space-url', value: 'https://mempool.example', comesTo: {} },
  { name: 'mempool-space-polling-interval-minutes', value: '10', comesTo: {} },
  { name: 'auto-liquidity', value: 'off', comesTo: { autoLiquiditySat: 0, maxMiningFeeSat: 0, maxFeeCreditSat: 0 } },
  {
    name: 'auto-liquidity',
    value: '2m',
    comesTo: { autoLiquiditySat: 2_000_000, maxMiningFeeSat: 20_000, maxFeeCreditSat: 50_000 },
  },
  {
    name: 'auto-liquidity',
    value: '5m',
    comesTo: { autoLiquiditySat: 5_000_000, maxMiningFeeSat: 50_000, maxFeeCreditSat: 125_000 },
  },
  {
    name: 'auto-liquidity',
    value: '10m',
    comesTo: { autoLiquiditySat: 10_000_000, maxMiningFeeSat: 100_000, maxFeeCreditSat: 250_000 },
  },
  { name: 'max-mining-fee', value: '5000', comesTo: { maxMiningFeeSat: 5_000 } },
  { name: 'max-mining-fee', value: '200000', comesTo: { maxMiningFeeSat: 200_000 } },
  { name: 'max-fee-credit', value: 'off', comesTo: { maxFeeCreditSat: 0 } },
  { name: 'max-fee-credit', value: '50k', comesTo: { maxFeeCreditSat: 50_000 } },
  { name: 'max-fee-credit', value: '125k', comesTo: { maxFeeCreditSat: 125_000 } },
  { name: 'max-fee-credit', value: '250k', comesTo: { maxFeeCreditSat: 250_000 } },
  { name: 'max-relative-fee-percent', value: '1', comesTo: { maxRelativeFeePercent: 1 } },
  { name: 'max-relative-fee-percent', value: '50', comesTo: { maxRelativeFeePercent: 50 } },
  { name: 'http-bind-ip', value: '0.0.0.0', comesTo: { bindIp: '0.0.0.0' } },
  { name: 'http-bind-port', value: '19740', comesTo: { bindPort: 19_740 } },
  { name: 'http-password', value: 'hunter2', comesTo: { httpPassword: 'hunter2' } },
  { name: 'http-password-limited-access', value: 'hunter3', comesTo: { limitedPassword: 'hunter3' } },
  { name: 'webhook', value: 'http://127.0.0.1/hook', comesTo: { webhooks: ['http://127.0.0.1/hook'] } },
  { name: 'webhook-secret', value: 'hush', comesTo: { webhookSecret: 'hush' } },
  { name: 'seed', value: 'any words', comesTo: { seedWords: 'any words' } },
  { name: 'seed-path', value: '/elsewhere', comesTo: { seedPath: '/elsewhere' } },
  { name: 'log-rotate-size', value: '1', comesTo: { logRotateBytes: 1_000_000 } },
  { name: 'log-rotate-max-files', value: '1', comesTo: { logRotateMaxFiles: 1 } },
]

const FLAGS: { name: string; comesTo: Partial<Options> }[] = [
  { name: 'agree-to-terms-of-service', comesTo: { agreed: true } },
  { name: 'verbose', comesTo: { verbosity: 'verbose' } },
]

describe('valid values are accepted', () => {
  test('without options, phoenixd’s defaults apply', () => {
    expect(optionsOf([])).toMatchObject({
      agreed: false,
      bindIp: '127.0.0.1',
      bindPort: 9740,
      httpPassword: undefined,
      limitedPassword: undefined,
      webhookSecret: undefined,
      webhooks: [],
      verbosity: 'default',
      logRotateBytes: 10_000_000,
      logRotateMaxFiles: 5,
      autoLiquiditySat: 2_000_000,
      maxMiningFeeSat: 20_000,
      maxFeeCreditSat: 50_000,
      maxRelativeFeePercent: 30,
    })
  })

  test.each(GOOD)('--$name=$value, as one argument, as two, and in the file', ({ name, value, comesTo }) => {
    expect(optionsOf([`--${name}=${value}`])).toMatchObject(comesTo)
    expect(optionsOf([`--${name}`, value])).toMatchObject(comesTo)
    expect(optionsOf([], `${name}=${value}`)).toMatchObject(comesTo)
  })

  test.each(FLAGS)('--$name, and $name=true in the file', ({ name, comesTo }) => {
    expect(optionsOf([`--${name}`])).toMatchObject(comesTo)
    expect(optionsOf([], `${name}=true`)).toMatchObject(comesTo)
    expect(optionsOf([], `${name}=false`)).not.toMatchObject(comesTo)
  })

  test('--silent counts on the command line only', () => {
    expect(optionsOf(['--silent']).verbosity).toBe('silent')
    expect(optionsOf([], 'silent=true').verbosity).toBe('default')
  })

  test('--seed-path=<file> and --seed exclude each other', () => {
    expect(() => optionsOf(['--seed=any words', '--seed-path=/elsewhere'])).toThrow('--seed cannot be used with --seed-path')
  })

  const everything = GOOD.filter(({ name }) => !/^(seed|seed-path|http-bind-ip|http-bind-port)$/.test(name))

  test('a daemon starts with all of them on its command line', async () => {
    const args = [...everything.map(({ name, value }) => `--${name}=${value}`), '--agree-to-terms-of-service', '--verbose']
    const node = await new TestNode({ args, conf: {} }).start()
    expect((await node.get('/getinfo', 'hunter2')).status).toBe(200)
  })

  test('a daemon starts with all of them in its file', async () => {
    const conf = Object.fromEntries([...everything.map(({ name, value }) => [name, value]), ['verbose', 'true']])
    const node = await new TestNode({ conf }).start()
    expect((await node.get('/getinfo', 'hunter3')).status).toBe(200)
  })
})

const BAD: { name: string; value: string; says: RegExp }[] = [
  ...['mainnet', 'testnet', 'signet', 'Regtest', ''].map((value) => ({ name: 'chain', value, says: /choose from regtest/ })),
  ...['1m', '2M', '2000000', ''].map((value) => ({ name: 'auto-liquidity', value, says: /choose from off, 2m, 5m, 10m/ })),
  ...['10k', '50000', '50K'].map((value) => ({ name: 'max-fee-credit', value, says: /choose from off, 50k, 125k, 250k/ })),
  ...['4999', '200001', '-5000'].map((value) => ({
    name: 'max-mining-fee',
    value,
    says: /is not in the valid range of 5000 sat to 200000 sat\./,
  })),
  ...['5000.5', '1e4', '0x2000', '', ' 5000'].map((value) => ({ name: 'max-mining-fee', value, says: /not a valid integer/ })),
  ...['0', '51'].map((value) => ({ name: 'max-relative-fee-percent', value, says: /range of 1 to 50/ })),
  { name: 'max-relative-fee-percent', value: '30%', says: /not a valid integer/ },
  ...['http', '97 40', ''].map((value) => ({ name: 'http-bind-port', value, says: /not a valid integer/ })),
  { name: 'log-rotate-size', value: '10MB', says: /not a valid integer/ },
  { name: 'log-rotate-size', value: '0', says: /range/ },
  { name: 'log-rotate-max-files', value: '0', says: /range/ },
  { name: 'log-rotate-max-files', value: 'many', says: /not a valid integer/ },
  { name: 'mempool-space-polling-interval-minutes', value: 'often', says: /not a valid integer/ },
]

describe.concurrent('invalid values are refused with one line, exit code 1 and no stack trace', () => {
  test.each(BAD)('--$name=$value, and the same in the file', ({ name, value, says }) => {
    const sentence = new RegExp(`^Error: invalid value for --${name}: .*${says.source}`, 'm')
    expect(() => optionsOf([`--${name}=${value}`])).toThrow(sentence)
    expect(() => optionsOf([`--${name}`, value])).toThrow(sentence)
    expect(() => optionsOf([], `${name}=${value}`)).toThrow(new RegExp(`^Error: invalid value: .*${says.source}`, 'm'))
  })

  /** The real process is tested with only one invalid value for each option, because starting it takes long. */
  const oneEach = BAD.filter(({ name }, index) => BAD.findIndex((other) => other.name === name) === index)
  test.each(oneEach)('--$name=$value ends the daemon, on the command line and in the file', async ({ name, value, says }) => {
    await Promise.all([
      expectRefusal([`--${name}=${value}`], '', new RegExp(`^invalid value for --${name}: .*${says.source}`)),
      expectRefusal([], `${name}=${value}`, new RegExp(`^invalid value: .*${says.source}`)),
    ])
  })

  test('--chain=testnet is refused as well', async () => {
    await expectRefusal(['--chain=testnet'], '', /^invalid value for --chain: invalid choice: testnet/)
  })

  test('the error for --max-absolute-fee names only the option that replaced it', async () => {
    const sentence = '--max-absolute-fee is deprecated, use --max-mining-fee instead'
    expect(() => optionsOf([], 'max-absolute-fee=1000')).toThrow(sentence)
    const daemon = new Daemon({ args: ['--max-absolute-fee=1000'], env: { PHOENIX_DATADIR: temporaryDirectory() } })
    expect(await daemon.exited).toEqual({ code: 1, signal: null })
    expect(linesOf(daemon.stderr)).toEqual([sentence])
  })

  test.each([
    { args: ['--datadir=/tmp'], says: /no such option --datadir/ },
    { args: ['--no-such-option'], says: /no such option --no-such-option/ },
    { args: ['--constructor'], says: /no such option --constructor/ },
    { args: ['--HTTP-BIND-PORT=1'], says: /no such option --HTTP-BIND-PORT/ },
    { args: ['-x'], says: /no such option -x/ },
    { args: ['--'], says: /no such option --/ },
    { args: ['--sandbox-peer=down'], says: /no such option --sandbox-peer/ },
    { args: ['start'], says: /^got unexpected extra argument \(start\)$/ },
    { args: ['--silent=true'], says: /--silent does not take a value/ },
    { args: ['--chain'], says: /--chain requires a value/ },
    { args: ['--seed=a b c', '--seed-path=/x'], says: /--seed cannot be used with --seed-path/ },
  ])('$args', async ({ args, says }) => {
    await expectRefusal(args, '', says)
  })

  test.each([
    { key: 'sandbox-hub', value: '127.0.0.1:9730', says: /^invalid value for sandbox-hub: token@host:port expected$/ },
    { key: 'sandbox-hub', value: 'token@127.0.0.1', says: /^invalid value for sandbox-hub: host:port expected$/ },
    { key: 'sandbox-hub', value: 'token@127.0.0.1:65536', says: /^invalid value for sandbox-hub: host:port expected$/ },
    { key: 'sandbox-control', value: 'everywhere', says: /^invalid value for sandbox-control: host:port expected$/ },
    { key: 'sandbox-callback', value: 'the service', says: /^invalid value for sandbox-callback: url expected$/ },
    { key: 'sandbox-peer', value: 'away', says: /^invalid value for sandbox-peer: / },
  ])('$key=$value', async ({ key, value, says }) => {
    await expectRefusal([], `${key}=${value}`, says)
  })

  test('a secret on the command line is not repeated in the error about another option', async () => {
    const daemon = new Daemon({ args: ['--http-password=hunter2', '--chain=mainnet'] })
    expect((await daemon.exited).code).toBe(1)
    expect(daemon.stderr).not.toContain('hunter2')
  })
})

describe('the command line wins over the file', () => {
  test.each([
    { arg: '--http-bind-port=1', line: 'http-bind-port=2', comesTo: { bindPort: 1 } },
    { arg: '--auto-liquidity=10m', line: 'auto-liquidity=off', comesTo: { autoLiquiditySat: 10_000_000 } },
    { arg: '--http-password=a', line: 'http-password=b', comesTo: { httpPassword: 'a' } },
    { arg: '--webhook=http://a', line: 'webhook=http://b', comesTo: { webhooks: ['http://a'] } },
  ])('$arg over $line', ({ arg, line, comesTo }) => {
    expect(optionsOf([arg], line)).toMatchObject(comesTo)
    expect(optionsOf([], line)).not.toMatchObject(comesTo)
  })

  test('an overridden value need not be valid', () => {
    expect(optionsOf(['--max-mining-fee=6000'], 'max-mining-fee=1')).toMatchObject({ maxMiningFeeSat: 6_000 })
  })

  test('if an option is repeated, the last one counts, but webhooks accumulate', () => {
    const args = ['--http-bind-port=1', '--http-bind-port=2', '--webhook=http://a', '--webhook=http://b']
    const expected = { bindPort: 2, webhooks: ['http://a', 'http://b'] }
    expect(optionsOf(args)).toMatchObject(expected)
    expect(optionsOf([], args.map((argument) => argument.slice(2)).join('\n'))).toMatchObject(expected)
  })

  test('in a running daemon, too', async () => {
    const node = await new TestNode({ conf: { 'http-password': 'in-the-file' }, args: ['--http-password=on-the-line'] }).start()
    expect((await node.get('/getinfo', 'on-the-line')).status).toBe(200)
    expect((await node.get('/getinfo', 'in-the-file')).status).toBe(401)
  })
})

describe('phoenix.conf is parsed with phoenixd’s quirks', () => {
  const LINES: { title: string; text: string; is: Record<string, string[]> }[] = [
    { title: 'a plain line', text: 'key=value', is: { key: ['value'] } },
    { title: 'the key ends at the first =, the value starts after the last', text: 'key=a=b=c', is: { key: ['c'] } },
    { title: 'a URL with a query breaks', text: 'webhook=http://h/?token=abc', is: { webhook: ['abc'] } },
    { title: 'nothing is trimmed', text: ' key = value ', is: { ' key ': [' value '] } },
    { title: 'there are no comments', text: '#key=value # more', is: { '#key': ['value # more'] } },
    { title: 'quotes are part of the value', text: 'key="value"', is: { key: ['"value"'] } },
    { title: 'an empty value is a value', text: 'key=', is: { key: [''] } },
    { title: 'an empty key is a key', text: '=value', is: { '': ['value'] } },
    { title: 'a value that ends with = is empty', text: 'key=YWJj=', is: { key: [''] } },
    { title: 'repeated lines all count', text: 'a=1\nb=x\na=2\na=1', is: { a: ['1', '2', '1'], b: ['x'] } },
    { title: 'empty lines and a missing last newline have no effect', text: '\n\na=1\n\nb=2', is: { a: ['1'], b: ['2'] } },
    { title: 'an empty file', text: '', is: {} },
    {
      title: 'a key like a method of objects',
      text: '__proto__=1\nconstructor=2',
      is: { constructor: ['2'], ['__proto__']: ['1'] },
    },
  ]

  test.each(LINES)('$title: $text', ({ text, is }) => {
    expect([...parseConf(text)].toSorted()).toEqual(Object.entries(is).toSorted())
  })

  test('any lines without = inside come back as they were written, in order', () => {
    const word = fc.string({ unit: 'grapheme' }).filter((text) => !/[=\r\n]/.test(text))
    fc.assert(
      fc.property(fc.array(fc.tuple(word, word)), (pairs) => {
        const conf = parseConf(pairs.map(([key, value]) => `${key}=${value}`).join('\n'))
        for (const [key] of pairs) {
          expect(conf.get(key)).toEqual(pairs.filter(([other]) => other === key).map(([, value]) => value))
        }
        expect(conf.size).toBe(new Set(pairs.map(([key]) => key)).size)
      }),
    )
  })

  test('unknown keys are ignored', () => {
    const conf = 'no-such-key=1\nconstructor=2\n__proto__=3\n# chain=mainnet\n[section]\nchain =mainnet\nChain=mainnet'
    expect(optionsOf([], conf)).toMatchObject({ bindPort: 9740 })
  })

  test('a daemon has the same quirks', async () => {
    const dataDir = temporaryDirectory()
    const written = `${confText({ ' http-password': 'spaced', 'http-password-limited-access': 'cut=here', 'some-future-key': 'x' })}\n#webhook-secret=y`
    writeFileSync(join(dataDir, 'phoenix.conf'), written)
    const port = await freePort()
    const args = ['--agree-to-terms-of-service', `--http-bind-port=${port}`]
    const daemon = new Daemon({ args, env: { PHOENIX_DATADIR: dataDir } })
    await daemon.printed(/listening on http/)
    const statusWith = async (password: string): Promise<number> =>
      (await send(port, 'GET', '/getinfo', { headers: { authorization: basic(password) } })).status
    expect(await statusWith('spaced')).toBe(401)
    expect(await statusWith('cut=here')).toBe(401)
    expect(await statusWith('here')).toBe(200)
    const appended = readText(join(dataDir, 'phoenix.conf')).slice(written.length)
    expect(appended).toMatch(/^\nhttp-password=[0-9a-f]{64}\nwebhook-secret=[0-9a-f]{64}/)
  })
})
