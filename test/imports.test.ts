import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { cycles, files, type Import, imports, packageOf, root } from './source-graph.ts'

/** The import rules of the architecture. Between rooms, and between the folders of the server, an import must be listed here. */

type Arrows = Record<string, string[]>

/** What a room (a top-level folder) may import from others. `sandboxd` imports none, because tests compare the service with it. */
const ROOMS: Arrows = {
  protocol: [],
  contract: [],
  server: ['protocol', 'contract'],
  sandboxd: [],
  sdk: ['protocol', 'contract'],
  cli: ['protocol', 'sdk'],
  dashboard: ['protocol', 'contract', 'sdk'],
  site: [],
  examples: ['sdk', 'testing'],
  bench: ['protocol', 'contract', 'server', 'sandboxd', 'sdk', 'cli', 'testing'],
  testing: ['protocol', 'contract', 'server', 'sandboxd', 'sdk', 'cli'],
  test: ['protocol', 'contract', 'server', 'sandboxd', 'sdk', 'cli', 'dashboard', 'site', 'examples', 'bench', 'testing'],
}

const EVERYONE = ['platform', 'problems']
const DOMAIN = ['store', 'settlements', 'lightning', 'nodes/runtime', 'config', ...EVERYONE]

/** Inside the server, by folder or file below server/src. `a/b` allows only the file `b` of `a`. */
const SERVER: Arrows = {
  main: ['service', 'commands', 'config', 'platform'],
  commands: ['nodes', 'runtimes', 'store', 'config', ...EVERYONE],
  service: [
    'node-host',
    'http',
    'nodes',
    'gateway',
    'accounts',
    'events',
    'sandbox',
    'runtimes',
    'metrics',
    'traces',
    'limits',
    ...DOMAIN,
  ],
  // The part of the wiring in `service` that decides where nodes run.
  'node-host': ['nodes', 'sandbox', 'runtimes', ...DOMAIN],
  config: ['platform'],
  http: ['nodes', 'gateway', 'accounts', 'events', 'sandbox', 'idempotency', 'config', ...EVERYONE],
  nodes: ['idempotency', ...DOMAIN],
  gateway: ['idempotency', ...DOMAIN],
  accounts: ['idempotency', ...DOMAIN],
  sandbox: DOMAIN,
  events: DOMAIN,
  metrics: ['store', 'config', ...EVERYONE],
  traces: ['config', ...EVERYONE],
  limits: EVERYONE,
  settlements: ['lightning', 'store', ...EVERYONE],
  idempotency: ['store', ...EVERYONE],
  runtimes: ['nodes/runtime', 'lightning', 'config', ...EVERYONE],
  lightning: EVERYONE,
  store: EVERYONE,
  platform: [],
  problems: [],
}

/** Pure files import only other pure files. */
const PURE: Arrows = {
  // Imports only types from the store: the state that it keeps for the state machine.
  'server/src/nodes/node.ts': ['server/src/store/nodes/node-state.ts', 'server/src/platform/versions.ts'],
  'server/src/store/nodes/node-state.ts': [],
  'server/src/platform/ids.ts': [],
  'server/src/platform/secrets.ts': [],
  'server/src/platform/versions.ts': [],
  'server/src/accounts/keys/key-format.ts': [],
}

/** Packages that only one place may import. */
const PACKAGES: [name: RegExp, places: RegExp][] = [
  [/^(fastify$|@fastify\/)/, /^server\/src\/http\//],
  [/^@kubernetes\//, /^server\/src\/runtimes\/kubernetes\//],
  [/^(postgres|pg|pg-copy-streams)$/, /^server\/src\/store\//],
  [/^(better-auth|@better-auth\/|@better-fetch\/|better-call$)/, /^server\/src\/accounts\/people\//],
  [/^pino/, /^server\/src\/platform\//],
  [/^ioredis$/, /^server\/src\/limits\//],
  [/^prom-client$/, /^server\/src\/metrics\//],
  [/^@opentelemetry\//, /^server\/src\/traces\//],
  [/^typebox$/, /^(contract\/|server\/src\/http\/)/],
  // On Node, node:crypto does the same, except that it cannot recover the key that signed an invoice.
  [
    /^@noble\//,
    /^(cli\/src\/check\/signer\.ts$|dashboard\/src\/payee\.ts$|sdk\/src\/buy\/crypto\/(noble|nostr)\.ts$|sandboxd\/)/,
  ],
  [/^(react|@mantine\/|@tanstack\/|@tabler\/)/, /^dashboard\//],
]

const isTest = (path: string): boolean => /^(test|testing|bench)\/|\/test\//.test(path)
const roomOf = (path: string): string => path.split('/')[0] ?? ''
const named = ({ from, to }: Import): string => `${from} → ${to}`

const ofFiles = imports.filter(({ isFile }) => isFile)
const ofPackages = imports.filter(({ isFile, to }) => !isFile && !to.startsWith('node:'))

test('a room imports only the rooms its rules allow; its tests may use other rooms’ test support', () => {
  const wrong = ofFiles.filter(({ from, to }) => {
    const [room, target] = [roomOf(from), roomOf(to)]
    const isShared = isTest(from) && (isTest(to) || target === 'sandboxd' || target === 'server')
    return room !== target && !ROOMS[room]?.includes(target) && !isShared
  })
  expect(wrong.map(named)).toEqual([])
})

test('no room imports another by its package name unless its rules allow it', () => {
  const wrong = ofPackages.filter(({ from, to }) => {
    const [, target = ''] = /^@boltyard\/(\w+)/.exec(to) ?? []
    return target !== '' && ![roomOf(from), ...(ROOMS[roomOf(from)] ?? [])].includes(target)
  })
  expect(wrong.map(named)).toEqual([])
})

/** `http` for server/src/http/app.ts, `config` for server/src/config.ts. */
const placeOf = (path: string): string => path.replace('server/src/', '').split('/')[0]?.replace(/\.ts$/, '') ?? ''

test('inside the server a folder imports only what its row allows', () => {
  const inside = ofFiles.filter(({ from, to }) => from.startsWith('server/src/') && to.startsWith('server/src/'))
  const wrong = inside.filter(({ from, to }) => {
    const [place, target] = [placeOf(from), placeOf(to)]
    const file = to.replace('server/src/', '').replace(/\.ts$/, '')
    return place !== target && !SERVER[place]?.some((allowed) => allowed === target || allowed === file)
  })
  expect(wrong.map((one) => named(one).replaceAll('server/src/', ''))).toEqual([])
})

test('every folder and file directly below server/src has a row', () => {
  const places = new Set(files.filter(({ path }) => path.startsWith('server/src/')).map(({ path }) => placeOf(path)))
  expect([...places].filter((place) => !(place in SERVER))).toEqual([])
})

test('inside sandboxd: the API uses the node, the node and the hub do not know the API; the ledger and the codecs are pure', () => {
  const arrows: [from: RegExp, to: RegExp][] = [
    [/^sandboxd\/src\/(node|hub|lightning)\//, /^sandboxd\/src\/(api\/|daemon|main)/],
    [/^sandboxd\/src\/lightning\//, /^sandboxd\/src\/(?!lightning)/],
    [/^sandboxd\/src\/node\/(ledger|liquidity|turns|faults)\.ts/, /^sandboxd\/src\/(journal|json-|log|hub)/],
    [/^sandboxd\/src\//, /^sandboxd\/test\//],
  ]
  const wrong = ofFiles.filter(({ from, to }) => arrows.some(([source, target]) => source.test(from) && target.test(to)))
  expect(wrong.map(named)).toEqual([])
})

test('no code imports a test', () => {
  expect(ofFiles.filter(({ from, to }) => !isTest(from) && /\/test\//.test(to)).map(named)).toEqual([])
})

test('pure files import nothing of the service', () => {
  expect(ofFiles.filter(({ from, to }) => PURE[from] && !PURE[from].includes(to)).map(named)).toEqual([])
})

test('a restricted package is imported only where it is allowed', () => {
  const wrong = ofPackages.filter(({ from, to }) => {
    const rule = isTest(from) ? undefined : PACKAGES.find(([name]) => name.test(packageOf(to)))
    return rule && !rule[1].test(from)
  })
  expect(wrong.map(named)).toEqual([])
})

test('the SDK has no runtime dependencies: its build copies what it uses of other packages', () => {
  const build = readFileSync(join(root, 'sdk/build.mjs'), 'utf8')
  const copied = [...build.matchAll(/^ {2}'(@[^']+)': \[/gm)].map(([, name]) => name)
  expect(copied).toHaveLength(6)
  const values = files
    .filter(({ path }) => path.startsWith('sdk/src/'))
    .flatMap(({ path, text }) =>
      [...text.matchAll(/^(?:import|export)\s(?!type\b)[^'`;]*?\bfrom\s+'([^.'][^']*)'/gm)].map(
        (match) => `${path} → ${match[1]}`,
      ),
    )
  expect(values.filter((line) => !/ → node:/.test(line) && !copied.includes(line.split(' → ')[1]))).toEqual([])
})

test('there are no import cycles, including type imports', () => {
  expect(cycles()).toEqual([])
})

test('the server’s environment goes from main to config.ts and nowhere else, except for PATH and the crash points', () => {
  const readers = files.filter(({ path, text }) => path.startsWith('server/src/') && /process\.env\b/.test(text))
  expect(readers.map(({ path }) => path).sort()).toEqual([
    'server/src/main.ts',
    'server/src/platform/crashpoint.ts',
    'server/src/platform/linux.ts',
  ])
})

test('C30: node material, including the full password, is opened only for the runtime and for a release, never on a request path', () => {
  const naming = (pattern: RegExp): string[] =>
    files
      .filter(({ path, text }) => path.startsWith('server/src/') && pattern.test(text))
      .map(({ path }) => path.replace('server/src/', ''))
      .sort()
  expect(naming(/\b(openMaterial|findMaterial)\b/)).toEqual([
    'commands/wallets-on-kubernetes.ts',
    'node-host.ts',
    'nodes/material.ts',
    'store/nodes/secrets.ts',
  ])
  expect(naming(/'node material'/)).toEqual(['nodes/material.ts', 'nodes/reseal.ts'])
})

test('the graph is complete: every room with code has imports', () => {
  for (const room of new Set(files.map(({ path }) => roomOf(path))))
    expect(
      imports.some(({ from }) => roomOf(from) === room),
      room,
    ).toBe(true)
})
