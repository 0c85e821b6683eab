import { execFileSync, spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { GLOBAL_OPTIONS, GROUPS } from '../src/command.ts'
import { COMMANDS } from '../src/commands.ts'
import { helpOn } from '../src/help.ts'
import { inHome, inTerminal, onTerminal, run } from './harness.ts'

const KEY = 'byk_0123456789abcdefghijklmnopqrstuvwxyzAB'
const HEX = 'ab'.repeat(32)

describe('a secret in the arguments', () => {
  test.each([
    ['a key', ['key', KEY]],
    ['a key as an option', ['nodes', 'list', `--api-key=${KEY}`]],
    ['a key in the address', ['nodes', 'list', '--base-url', `http://${KEY}@127.0.0.1/v1`]],
    ['a key before the command', [KEY, 'nodes', 'list']],
    ['a webhook’s secret', ['listen', '--forward-to', 'http://127.0.0.1:1/', '--secret', `whsec_${'A'.repeat(43)}=`]],
    ['a node’s password', ['pay', 'http://127.0.0.1:1/', '--password', HEX]],
    ['a node’s password, joined', ['pay', 'http://127.0.0.1:1/', `--password=${HEX}`]],
    ['an L402 credential', ['payments', 'validate', 'pay_1', `L402 AgEIYm9sdHlhcmQ=:${HEX}`]],
    ['an MPP credential', ['payments', 'validate', 'pay_1', 'Payment eyJjaGFsbGVuZ2UiOnsiaWQiOiJ4In19']],
  ])('%s is refused, and not repeated', async (_, args) => {
    const { code, stdout, stderr } = await run(args)
    expect([code, stdout, JSON.parse(stderr).error.code]).toEqual([2, '', 'secret_in_arguments'])
    expect(stderr).not.toMatch(/byk_|whsec_|abab|AgEI|eyJj/)
  })

  test('similar text is not mistaken for a secret', async () => {
    for (const args of [
      ['payments', 'create', '--description', 'Payment for lunch'],
      ['nodes', 'rename', 'node_x', 'byk_'],
    ]) {
      expect((await run(args)).stderr).not.toContain('secret_in_arguments')
    }
  })
})

describe('a mistake is exit code 2, with a suggestion', () => {
  test.each([
    [['ndoes', 'list'], 'boltyard nodes'],
    [['nodes', 'craete'], 'boltyard nodes create'],
    [['nodes', 'del', 'x'], 'boltyard nodes delete'],
    [['nodes', 'list', '--jsno'], '--json'],
    [['nodes', 'create', '--nmae', 'x'], '--name'],
    [['nodes', 'create', '--access-mode', 'ful'], '--access-mode full'],
    [['completion', 'bsh'], 'boltyard completion bash'],
  ])('%j → %s', async (args, meant) => {
    const { code, stdout, error } = await run(args)
    expect([code, stdout]).toEqual([2, ''])
    expect(error().next).toBe(`Did you mean: ${meant}`)
  })

  test.each([
    [[]],
    [['nodes']],
    [['nodes', 'get']],
    [['nodes', 'get', 'a', 'b']],
    [['nodes', 'create', '--name']],
    [['nodes', 'create', '--name', '--wait']],
    [['nodes', 'list', '--json=yes']],
    [['nodes', 'list', '--json', '--base-url', 'a', '--base-url', 'b']],
    [['nodes', 'list', '--timeout', '0']],
    [['nodes', 'list', '--timeout', '1.5']],
    [['payments', 'create', '--node', 'x', '--amount-sat', '0', '--description', 'x']],
    [['payments', 'create', '--node', 'x', '--amount-sat', '-5', '--description', 'x']],
    [['payments', 'create']],
    [['nodes', 'list', '-x']],
    [['--nonsense']],
    [['quite', 'unknown']],
    [['sandbox', 'fund', 'node_x', '1e3']],
    [['pay', 'ftp://example.com/']],
    [['pay', 'http://user:secret@example.com/']],
    [['pay', 'http://127.0.0.1:1/', '--header', 'Authorization: Bearer x']],
    [['pay', 'http://127.0.0.1:1/', '--header', 'none']],
    [['pay', 'http://127.0.0.1:1/', '--output', '/nonexistent/file']],
  ])('%j', async (args) => {
    const { code, stdout, stderr } = await run(args, { env: { SERVICE_API_KEY: KEY } })
    expect([code, stdout]).toEqual([2, ''])
    expect(JSON.parse(stderr)).toEqual({ error: { code: 'usage', message: expect.any(String), next: expect.any(String) } })
  })

  test('options may be anywhere, even before the command, and their values are not commands', async () => {
    const { error } = await run(['--base-url', 'http://127.0.0.1:1/v1', '--json', 'nodes', '--timeout', '120', 'list'], {
      env: { SERVICE_API_KEY: KEY },
    })
    expect(error().code).toBe('connection_failed')
  })
})

describe('help', () => {
  const topics = ['', ...Object.keys(GROUPS), ...COMMANDS.map(({ path }) => path)]

  test('always starts with examples, and every example parses as its command', () => {
    for (const topic of topics) {
      const text = helpOn(topic, COMMANDS)
      expect(text).toMatch(/^Examples\n {2}# /)
      expect(text.split('\n').filter((line) => line.length > 100 && !line.startsWith('  boltyard '))).toEqual([])
    }
    for (const { path, examples } of COMMANDS) expect(examples.every(({ line }) => line.includes(`boltyard ${path}`))).toBe(true)
  })

  test.each([
    [['--help']],
    [['-h']],
    [['help']],
    [['nodes', '--help']],
    [['help', 'nodes', 'create']],
    [['nodes', 'create', '-h']],
  ])('%j goes to stdout, without a key or a service', async (args) => {
    const { code, stdout, stderr } = await run(args)
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(/^Examples\n/)
  })

  test('what can be repeated, and for how long', () => {
    const words = (topic: string): string => helpOn(topic, COMMANDS).replace(/\s+/g, ' ')
    expect(words('nodes create')).toContain(
      'run it again within 23 hours with the same API key and the same --idempotency-key or --credentials-file:',
    )
    expect(words('payments validate')).toContain('for MPP, and for L402 with --single-use, it succeeds only once.')
  })

  test('docs/cli.md is generated from the help texts', () => {
    const text = readFileSync(fileURLToPath(new URL('../../docs/cli.md', import.meta.url)), 'utf8')
    for (const topic of ['', ...COMMANDS.map(({ path }) => path)]) expect(text).toContain(helpOn(topic, COMMANDS))
  })

  test('an option has the same kind in every command: the parser and the shells rely on it', () => {
    const kinds = new Map<string, Set<string>>()
    for (const { options = {} } of COMMANDS)
      for (const [name, { kind }] of Object.entries({ ...GLOBAL_OPTIONS, ...options }))
        kinds.set(name, (kinds.get(name) ?? new Set()).add(kind))
    expect([...kinds].filter(([, set]) => set.size > 1)).toEqual([])
  })
})

test.each(['--version', '-v', '-V', 'version'])('D15: %s is the package’s version', async (word) => {
  const { version } = JSON.parse(readFileSync(fileURLToPath(new URL('../package.json', import.meta.url)), 'utf8'))
  expect(await run([word])).toMatchObject({ code: 0, stdout: `${version}\n`, stderr: '' })
})

describe('completion', () => {
  async function completed(line: string): Promise<string[]> {
    writeFileSync(inHome('complete.bash'), (await run(['completion', 'bash'])).stdout)
    const words = line.split(' ').map((word) => `'${word}'`)
    const program = `source complete.bash; COMP_WORDS=(${words.join(' ')}); COMP_CWORD=${words.length - 1}; _boltyard; printf '%s\\n' "\${COMPREPLY[@]}"`
    return execFileSync('bash', ['-c', program], { cwd: inHome(''), encoding: 'utf8' })
      .split('\n')
      .filter(Boolean)
  }

  test('bash completes commands, options, choices and files', async () => {
    expect(await completed('boltyard no')).toEqual(['nodes'])
    expect(await completed('boltyard nodes re')).toEqual(['rename', 'restart'])
    expect(await completed('boltyard nodes delete node_x --f')).toEqual(['--force'])
    expect(await completed('boltyard payments create --protocol ')).toEqual(['mpp', 'l402'])
    expect(await completed('boltyard payments list --status p')).toEqual(['payment_required', 'paid'])
    expect(await completed('boltyard webhooks deliveries hook_x --status ')).toEqual(['pending', 'delivered', 'failed'])
    expect(await completed('boltyard pay http://x --password-file comp')).toEqual(['complete.bash'])
    expect(await completed('boltyard --json payments va')).toEqual(['validate'])
    expect(await completed('boltyard completion f')).toEqual(['fish'])
  })

  test.each(['zsh', 'fish'])('%s: every command and option is in it', async (shell) => {
    const { code, stdout } = await run(['completion', shell])
    expect(code).toBe(0)
    for (const { path, options = {} } of COMMANDS) {
      expect(stdout).toContain(path.split(' ').at(-1))
      for (const name of Object.keys(options))
        expect(stdout).toMatch(shell === 'zsh' ? `--${name}[` : new RegExp(`-l ${name}\\b`))
    }
  })
})

for (const shell of ['zsh', 'fish']) {
  const isThere = spawnSync(shell, ['-c', 'exit 0']).status === 0
  if (!isThere) process.stderr.write(`\n### SKIPPED: ${shell} reads its completion: there is no ${shell} ###\n\n`)
  test.skipIf(!isThere && process.env.CI !== 'true')(`${shell} can read its completion`, async () => {
    writeFileSync(inHome(shell), (await run(['completion', shell])).stdout)
    expect(spawnSync(shell, ['-n', inHome(shell)], { encoding: 'utf8' })).toMatchObject({ status: 0, stderr: '' })
  })
}

onTerminal('mistakes and help', () => {
  test('a mistake is a sentence with advice, not JSON', async () => {
    const { code, plain } = await inTerminal(['nodes', 'craete'])
    expect(code).toBe(2)
    expect(plain).toBe('boltyard: Unknown command “craete”.\n  Did you mean: boltyard nodes create\n')
  })

  test('with --json, it is JSON on a terminal too', async () => {
    expect(JSON.parse((await inTerminal(['nodes', 'list', '--json'])).plain).error.code).toBe('no_api_key')
  })

  test('without arguments it shows the help', async () => {
    const { code, plain } = await inTerminal(['nodes'])
    expect(code).toBe(2)
    expect(plain).toMatch(/^Examples\n/)
  })

  test('errors are red, except with NO_COLOR or on a dumb terminal', async () => {
    expect((await inTerminal(['x-y-z'])).screen).toContain('\x1b[31m')
    for (const env of [{ NO_COLOR: '1' }, { TERM: 'dumb' }])
      expect((await inTerminal(['x-y-z'], { env })).screen).not.toContain('\x1b')
  })
})
