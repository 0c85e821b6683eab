import { describe, expect, test } from 'vitest'
import type { ApiKey, DashboardNode, GatewayPayment, Webhook } from '../src/api/types.ts'
import { groupsFor, type Known } from '../src/components/palette/commands.ts'
import { GO_KEYS, keyReader, type Pressed, type Situation } from '../src/components/palette/keys.ts'
import { noteFor, paymentSearchIn, rankOf } from '../src/components/palette/matching.ts'

const node = (id: string, name: string) => ({ id, name }) as DashboardNode
const key = (id: string, name: string, prefix: string) => ({ id, name, prefix }) as ApiKey
const webhook = (id: string, url: string, description: string | null) => ({ id, url, description }) as Webhook
const NODE_ID = 'node_d1xkpypvpgtyntvfw7g5'
const HASH = 'ab'.repeat(32)
const SECRET = 'byk_a2vW0123456789abcdefghijABCDEFGHIJkl'

const KNOWN: Known = {
  nodes: [node(NODE_ID, 'Café shop'), node('node_00000000000000000000', 'Podcast')],
  keys: [key('key_00000000000000000000', 'Shop server', 'byk_a2vW'), key('key_11111111111111111111', 'Backups', 'byk_Zz9Q')],
  webhooks: [webhook('hook_00000000000000000000', 'https://shop.example/hook', null)],
  subjects: {
    nodes: [
      { id: 'node_22222222222222222222', name: 'Old shop', isGone: true },
      { id: NODE_ID, name: 'Café shop', isGone: false },
    ],
    keys: [{ id: 'key_22222222222222222222', name: 'Laptop of Ann', isGone: true, prefix: 'byk_sgNE' }],
  },
  payments: undefined,
  isSandbox: true,
  isDark: false,
  unit: 'sat',
  now: 1_790_000_000,
}
const listed = (query: string, more: Partial<Known> = {}): string[] =>
  groupsFor(query, { ...KNOWN, ...more }).flatMap(({ name, commands }) => commands.map(({ label }) => `${name}: ${label}`))
const pathsFor = (query: string, more: Partial<Known> = {}): string[] =>
  groupsFor(query, { ...KNOWN, ...more }).flatMap(({ commands }) =>
    commands.flatMap(({ act }) => (act.kind === 'go' ? [act.path] : [])),
  )

describe('palette: what it lists', () => {
  test('without a query, every page and every action, and no data of the account', () => {
    expect(groupsFor('', KNOWN).map(({ name, commands }) => [name, commands.length])).toEqual([
      ['Pages', 13],
      ['Actions', 8],
    ])
    expect(listed('', { isSandbox: false })).not.toContain('Pages: Try it')
    expect(listed('', { isDark: true, unit: 'btc' })).toEqual(
      expect.arrayContaining(['Actions: Use the light theme', 'Actions: Show amounts in sat']),
    )
  })

  test('the best match comes first, whatever kind it is', () => {
    expect(listed('shop')[0]).toBe('API keys: Shop server')
    expect(listed('cafe')[0]).toBe('Nodes: Café shop')
    expect(listed('NODES')[0]).toBe('Pages: Nodes')
    expect(listed('create')[0]).toBe('Actions: Create node')
    expect(listed('top up')[0]).toBe('Pages: Credit')
  })

  test('a node is started, stopped or restarted, as its status allows, and only if such a verb is typed', () => {
    const as = (status: string, operation: string | null = null) => ({
      nodes: [{ ...node(NODE_ID, 'Café shop'), status, operation } as DashboardNode],
    })
    expect(listed('stop cafe', as('ready'))).toContain('Operate nodes: Stop Café shop…')
    expect(listed('cafe restart', as('ready'))).toContain('Operate nodes: Restart Café shop…')
    expect(listed('sta', as('stopped'))).toContain('Operate nodes: Start Café shop')
    const operations = (query: string, more: Partial<Known>) =>
      listed(query, more).filter((line) => line.startsWith('Operate nodes'))
    expect(operations('cafe', as('ready'))).toEqual([])
    expect(operations('start', as('ready'))).toEqual([])
    expect(operations('start', as('stopped', 'start'))).toEqual([])
    const many = { nodes: Array.from({ length: 200 }, (_, n) => ({ ...as('ready').nodes[0], id: `node_${n}` }) as DashboardNode) }
    expect(operations('stop', many)).toHaveLength(7)
    expect(operations('stop', many).at(-1)).toBe('Operate nodes: 194 more such operations of nodes…')
  })

  test.each([
    ['not delivered', '/gateway?state=unfulfilled&period=7d'],
    ['paid but got nothing', '/gateway?state=unfulfilled&period=7d'],
    ['paid this week', '/gateway?state=unfulfilled&period=7d'],
    ['October', '/#received'],
    ['october 2025', '/#received'],
    ['this month', '/#received'],
    ['what I earned', '/#received'],
    ['income', '/#received'],
    ['revenue', '/#received'],
    ['received', '/#received'],
    ['operator', '/operator'],
    ['sign-in link', '/operator'],
    ['give access', '/operator'],
    ['export', '/gateway'],
    ['dark mode', undefined],
  ])('“%s” leads to %s', (query, path) => {
    const [first] = groupsFor(query, KNOWN).flatMap(({ commands }) => commands)
    expect(first?.act).toEqual(path === undefined ? { kind: 'do', what: 'switch-theme' } : { kind: 'go', path })
  })

  test('a password is changed in the settings; an operator gives access to someone who forgot it', () => {
    expect(pathsFor('reset password')).toEqual(['/settings', '/operator'])
    expect(listed('')).not.toContain('Pages: Operator’s pages')
  })

  test('nodes, keys and webhooks are found by name, id and address', () => {
    expect(pathsFor(NODE_ID)).toEqual([`/nodes/${NODE_ID}`])
    expect(pathsFor('backups')).toEqual(['/developers#key_11111111111111111111'])
    expect(pathsFor('shop.example')).toEqual(['/developers/webhooks/hook_00000000000000000000'])
  })

  test('revoked keys and deleted nodes are found, and lead to what happened to them', () => {
    // A key is found by its name, its first characters, or the whole secret.
    for (const query of ['laptop', 'byk_sgNE', `byk_sgNE${SECRET.slice(8)}`])
      expect([query, pathsFor(query)]).toEqual([query, ['/activity?keyId=key_22222222222222222222']])
    expect(pathsFor('old shop')).toEqual(['/activity?nodeId=node_22222222222222222222'])
    expect(pathsFor('café')).toEqual([`/nodes/${NODE_ID}`])
  })

  test('of many nodes the best are listed, with how many more there are and where', () => {
    const nodes = Array.from({ length: 1_206 }, (_, place) => node(`node_${place}`, `Shop ${place}`))
    const [group] = groupsFor('shop', { ...KNOWN, nodes }).filter(({ name }) => name === 'Nodes')
    expect(group?.commands).toHaveLength(7)
    expect(group?.commands.at(-1)).toMatchObject({
      label: '1\u2009200 more nodes…',
      act: { kind: 'go', path: '/nodes?q=%22shop%22' },
    })
    expect(listed('shop', { nodes: nodes.slice(0, 7) })).toContain('Nodes: 1 more node…')
    expect(listed('shop', { nodes: nodes.slice(0, 6) })).not.toContain('Nodes: 0 more nodes…')
    // The search of the list of nodes does not find "Shöp" for "shop", so the link to the list is not offered.
    const accented = nodes.slice(0, 20).map(({ id }, place) => node(id, `Shöp ${place}`))
    expect(listed('shop', { nodes: accented }).filter((line) => /more node/.test(line))).toEqual([])
  })

  test('of many keys and webhooks, too, and of those that are gone', () => {
    const names = Array.from({ length: 8 }, (_, place) => `Shop ${place}`)
    const gone = { isGone: true }
    const many = {
      nodes: [],
      keys: names.map((name, place) => key(`key_${place}`, name, `byk_${place}`)),
      webhooks: names.map((name, place) => webhook(`hook_${place}`, 'https://example.com', name)),
      subjects: {
        nodes: names.map((name, place) => ({ id: `node_${place}`, name, ...gone })),
        keys: names.map((name, place) => ({ id: `key_2${place}`, name, prefix: `byk_2${place}`, ...gone })),
      },
    }
    expect(groupsFor('shop', { ...KNOWN, ...many }).flatMap(({ commands }) => commands.slice(6))).toMatchObject([
      { label: '2 more API keys…', act: { path: '/developers' } },
      { label: '2 more webhooks…', act: { path: '/developers/webhooks' } },
      { label: '2 more revoked API keys…', act: { path: '/activity?kind=keys' } },
      { label: '2 more deleted nodes…', act: { path: '/activity?kind=nodes' } },
    ])
  })

  test('payments come after everything that was there before they arrived', () => {
    const found = [{ id: 'pay_1', description: 'A shop', amountSat: 5, createdAt: 1_790_000_000 } as GatewayPayment]
    const before = listed('shop').filter((line) => !line.startsWith('Documentation'))
    const after = listed('shop', { payments: { payments: found, nextCursor: 'pay_1' } })
    expect(after).toEqual([
      ...before,
      'Payments: A shop',
      'Payments: All payments that match “shop”',
      'Documentation: Search the documentation for “shop”',
    ])
  })

  test('a pasted API key is recognized by its beginning, and gets into no request and no link', () => {
    expect(listed(SECRET)).toEqual(['API keys that start like this: Shop server'])
    expect(JSON.stringify(groupsFor(SECRET, KNOWN))).not.toContain(SECRET)
    expect(paymentSearchIn(SECRET)).toBeUndefined()
    expect(paymentSearchIn(`Bearer ${SECRET}`)).toBeUndefined()
  })

  test('every key after g is shown at its page', () => {
    const shown = groupsFor('', KNOWN).flatMap(({ commands }) => commands.flatMap(({ keys }) => keys ?? []))
    for (const second of Object.keys(GO_KEYS)) expect(shown).toContain(`g ${second}`)
  })
})

test.each([
  ['pay_d1xkpzyqc4nvthwf6zay', true],
  [HASH, true],
  [`lightning:LNBCRT1${'Q'.repeat(300)}`, true],
  ['weather', true],
  ['we', false],
  [NODE_ID, false],
  // Longer than what anyone types, and as long as the recovery words of a node.
  ['abandon '.repeat(11).concat('about'), false],
])('palette: payments are asked for "%s": %s', (query, isAsked) => {
  expect(paymentSearchIn(query)).toBe(isAsked ? query : undefined)
})

test('palette: every word must match somewhere, and a name beats another field', () => {
  expect(rankOf('shop berlin', 'Shop')).toBeUndefined()
  expect(rankOf('shop node_1', 'Shop', ['node_1'])).toBeDefined()
  expect(rankOf('server 13', 'Server 47', ['key_d1x13k'])).toBeUndefined()
  // Except words such as “my” and “in”, which say nothing about what is searched for.
  expect(rankOf('my shop in berlin', 'Shop Berlin')).toBeDefined()
  expect(rankOf('my', 'My shop')).toBe(1)
  expect(rankOf('the', 'Shop')).toBeUndefined()
  const ranks = [rankOf('shop', 'shop'), rankOf('shop', 'Shop 2'), rankOf('shop', 'My shop'), rankOf('shop', 'Workshop')]
  expect(ranks).toEqual([0, 1, 2, 3])
  expect(rankOf('shop', 'Hook', ['https://shop.example'])).toBe(4)
})

test('palette: it says that nothing was found only when everything was searched', () => {
  const nothing = { count: 0, offersDocs: false, isSearching: false, failed: [] }
  expect(noteFor('zzz', nothing)).toBe('Nothing found for “zzz”.')
  expect(noteFor('zzz', { ...nothing, offersDocs: true })).toBe('Nothing else found for “zzz”.')
  expect(noteFor('zzz', { ...nothing, isSearching: true })).toBe('Searching…')
  expect(noteFor('zzz', { ...nothing, failed: ['payments'] })).toMatch(/^Not searched.*: payments\.$/)
  expect(noteFor('z'.repeat(80), nothing)).toMatch(/Payments were not searched/)
  expect(noteFor(SECRET, nothing)).toMatch(/was not sent/)
  expect(noteFor('  ', nothing)).toBe('')
})

describe('shortcuts: which keys mean what', () => {
  const FREE: Situation = { isTyping: false, isInDialog: false, isOn: true, isApple: false, nowMs: 0 }
  const plain = (pressed: string): Pressed => ({
    key: pressed,
    ctrlKey: false,
    metaKey: false,
    altKey: false,
    isComposing: false,
    repeat: false,
  })
  /** The meaning of the last of these keys. */
  const press = (keys: string, situation: Partial<Situation> = {}, more: Partial<Pressed> = {}) => {
    const read = keyReader()
    return [...keys].map((one) => read({ ...plain(one), ...more }, { ...FREE, ...situation })).at(-1)
  }

  test('g and a letter go to a page, ? and / do what they say', () => {
    for (const [second, { path }] of Object.entries(GO_KEYS)) expect(press(`g${second}`)).toEqual({ act: 'go', path })
    expect(press('?')).toEqual({ act: 'help' })
    expect(press('/')).toEqual({ act: 'search' })
  })

  test('a letter means nothing without g right before it, or when g was long ago', () => {
    for (const keys of ['n', 'gx', 'gxn', 'g', 'G', 'gN']) expect([keys, press(keys)]).toEqual([keys, undefined])
    const read = keyReader()
    read(plain('g'), FREE)
    expect(read(plain('n'), { ...FREE, nowMs: 5_000 })).toBeUndefined()
  })

  test('WCAG 2.1.4: single keys do nothing in a field, in a dialog, with modifiers, or when turned off', () => {
    for (const keys of ['gn', '?', '/']) {
      for (const situation of [{ isTyping: true }, { isInDialog: true }, { isOn: false }])
        expect([keys, situation, press(keys, situation)]).toEqual([keys, situation, undefined])
      for (const more of [{ ctrlKey: true }, { metaKey: true }, { altKey: true }, { isComposing: true }, { repeat: true }])
        expect([keys, more, press(keys, {}, more)]).toEqual([keys, more, undefined])
    }
  })

  test('Ctrl+K opens the palette, also in a field and with single keys turned off, but never over a dialog', () => {
    const palette = { act: 'palette' }
    expect(press('k', { isTyping: true, isOn: false }, { ctrlKey: true })).toEqual(palette)
    expect(press('k', { isApple: true }, { metaKey: true })).toEqual(palette)
    // On a Mac, Control+K deletes the rest of the line in a text field.
    expect(press('k', { isApple: true }, { ctrlKey: true })).toBeUndefined()
    expect(press('k', { isInDialog: true }, { ctrlKey: true })).toBeUndefined()
  })
})
