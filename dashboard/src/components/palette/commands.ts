import type { ActivitySubjects } from '../../api/activity.ts'
import type { ApiKey, DashboardNode, GatewayPayment, Webhook } from '../../api/types.ts'
import { counted, relative, sats } from '../../text/format.ts'
import { lastMonths, monthName } from '../../text/months.ts'
import { filteredNodes } from '../../text/node-filter.ts'
import type { Unit } from '../../unit.ts'
import { goKeyOf } from './keys.ts'
import { paymentSearchIn, rankOf } from './matching.ts'
import { NODE_VERBS, type NodeVerb, verbsOf } from './node-operations.ts'

export type Doing = 'copy-account-id' | 'switch-theme' | 'switch-unit' | 'sign-out' | 'show-shortcuts'
export type Act =
  | { kind: 'go'; path: string }
  | { kind: 'open'; href: string }
  | { kind: 'do'; what: Doing }
  | { kind: 'operate'; nodeId: string; verb: NodeVerb }
export type Kind = 'page' | 'action' | 'node' | 'payment' | 'key' | 'webhook' | 'docs'
export type Command = {
  id: string
  kind: Kind
  label: string
  /** A name inside the label that a person chose. */
  named?: string
  /** A second line. */
  hint?: string
  /** What else people may type to find the command. */
  others?: string[]
  /** The shortcut for the command. */
  keys?: string
  act: Act
}
export type Group = { name: string; commands: Command[] }

/** Everything that may be listed. Undefined: not loaded. */
export type Known = {
  nodes: DashboardNode[] | undefined
  keys: ApiKey[] | undefined
  webhooks: Webhook[] | undefined
  /** Includes revoked keys and deleted nodes, which only the activity log still names. */
  subjects: Pick<ActivitySubjects, 'nodes' | 'keys'> | undefined
  payments: { payments: GatewayPayment[]; nextCursor: string | null } | undefined
  isSandbox: boolean
  isDark: boolean
  unit: Unit
  /** Unix seconds. */
  now: number
}

const MOST_OF_A_KIND = 6

function page(label: string, path: string, others: string[] = []): Command {
  const key = goKeyOf(path)
  return { id: `page ${path}`, kind: 'page', label, others, act: { kind: 'go', path }, ...(key && { keys: `g ${key}` }) }
}

const pages = ({ isSandbox, now }: Known): Command[] => [
  page('Overview', '/', ['home start']),
  {
    ...page('Received by month', '/#received', [
      'earned earnings income revenue sales turnover made money total chart',
      ...lastMonths(now).map(monthName),
    ]),
    hint: 'in the overview; choose the month there',
  },
  page('Nodes', '/nodes', ['wallets balance send withdraw invoices']),
  page('Payments', '/gateway', ['gateway customers transactions export csv']),
  page('Paid, got nothing', '/gateway?state=unfulfilled&period=7d', [
    'customers not delivered undelivered failed missing refund week settled no delivery',
  ]),
  // Without play money there is nothing to try.
  ...(isSandbox ? [page('Try it', '/gateway/try-it', ['test purchase gateway 402'])] : []),
  page('API keys', '/developers', ['developers quick start tokens secrets rotate revoke']),
  page('Requests', '/developers/requests', ['developers log api']),
  page('Webhooks', '/developers/webhooks', ['developers events']),
  page('Credit', '/credit', ['top up balance billing usage buy add cost price']),
  page('Activity', '/activity', ['audit log events who revoked deleted changed']),
  page('Settings', '/settings', ['account change reset password passkeys 2fa sessions devices email delete', 'two-factor']),
  { id: 'docs', kind: 'docs', label: 'Documentation', others: ['docs help guide'], act: { kind: 'open', href: '/docs/' } },
]

function action(label: string, act: Act, others: string[] = []): Command {
  return { id: `action ${label}`, kind: 'action', label, others, act }
}

/** Most people are not the operator, so this page is listed only for those who search for it. */
const OPERATOR: Command = {
  ...page('Operator’s pages', '/operator', [
    'sign-in link',
    'accounts people users hosts admin give access signin login invite invitation reset forgot forgotten password',
  ]),
  hint: 'accounts, sign-in links and hosts; asks for the operator token',
}

const actions = ({ isDark, unit }: Known): Command[] => [
  action('Create node', { kind: 'go', path: '/nodes?create=true' }, ['new add']),
  action('Create API key', { kind: 'go', path: '/developers?create=true' }, ['new add token']),
  action('Copy account id', { kind: 'do', what: 'copy-account-id' }),
  action(isDark ? 'Use the light theme' : 'Use the dark theme', { kind: 'do', what: 'switch-theme' }, [
    'appearance mode color dark light',
  ]),
  action(unit === 'sat' ? 'Show amounts in BTC' : 'Show amounts in sat', { kind: 'do', what: 'switch-unit' }, ['unit bitcoin']),
  { ...action('Keyboard shortcuts', { kind: 'do', what: 'show-shortcuts' }, ['keys help']), keys: '?' },
  action('Search the documentation', { kind: 'open', href: docsSearch('') }, ['docs help']),
  action('Sign out', { kind: 'do', what: 'sign-out' }, ['log out logout signout leave']),
]

/** The query is behind the #, so that what people look for is not sent to the service. */
const docsSearch = (query: string): string => `/docs/#search=${encodeURIComponent(query)}`

const ofNode = (node: DashboardNode): Command => ({
  id: node.id,
  kind: 'node',
  label: node.name,
  hint: node.id,
  others: [node.id],
  act: { kind: 'go', path: `/nodes/${node.id}` },
})

/** Only if the query contains the beginning of such a verb: otherwise, each search for a node would list its operations, too. */
function operationsFor(text: string, nodes: DashboardNode[]): Command[] {
  const typed = text.toLowerCase().split(/\s+/)
  const isTyped = (verb: NodeVerb) => typed.some((word) => word.length > 1 && verb.startsWith(word))
  return nodes.flatMap(({ id, name, status, operation }) =>
    (operation === null ? verbsOf({ status }) : []).filter(isTyped).map((verb) => ({
      id: `${verb} ${id}`,
      kind: 'action',
      // As on the node's page, every operation except starting asks for confirmation.
      label: `${NODE_VERBS[verb]} ${name}${verb === 'start' ? '' : '…'}`,
      named: name,
      hint: id,
      others: ['node', id],
      act: { kind: 'operate', nodeId: id, verb },
    })),
  )
}

const ofKey = (key: ApiKey): Command => ({
  id: key.id,
  kind: 'key',
  label: key.name,
  hint: `${key.prefix}…`,
  others: [key.id, key.prefix],
  act: { kind: 'go', path: `/developers#${key.id}` },
})

const ofRevoked = ({ id, name, prefix }: ActivitySubjects['keys'][number]): Command => ({
  id,
  kind: 'key',
  label: name,
  hint: `${prefix}…, revoked; see its activity`,
  others: [id, prefix],
  act: { kind: 'go', path: `/activity?keyId=${id}` },
})

const ofDeleted = ({ id, name }: ActivitySubjects['nodes'][number]): Command => ({
  id,
  kind: 'node',
  label: name,
  hint: 'deleted; see its activity',
  others: [id],
  act: { kind: 'go', path: `/activity?nodeId=${id}` },
})

const ofWebhook = ({ id, url, description }: Webhook): Command => ({
  id,
  kind: 'webhook',
  label: description || url,
  ...(description && { hint: url }),
  others: [id, url],
  act: { kind: 'go', path: `/developers/webhooks/${id}` },
})

const ofPayment = ({ id, description, amountSat, createdAt }: GatewayPayment, now: number): Command => ({
  id,
  kind: 'payment',
  label: description,
  hint: `${sats(amountSat)}, created ${relative(createdAt, now)}`,
  act: { kind: 'go', path: `/gateway/payments/${id}` },
})

/** Best first; commands that match equally well keep their order. */
function found(query: string, commands: Command[]): Ranked {
  const ranked = commands
    .flatMap((command) => {
      const rank = rankOf(query, command.label, command.others)
      return rank === undefined ? [] : [{ command, rank }]
    })
    .sort((one, other) => one.rank - other.rank)
  return { best: ranked[0]?.rank ?? Number.POSITIVE_INFINITY, commands: ranked.map(({ command }) => command) }
}
type Ranked = { best: number; commands: Command[] }

/** What the palette shows for a query. Without one, the pages and actions. */
export function groupsFor(query: string, known: Known): Group[] {
  const text = query.trim()
  const { nodes = [], keys = [], webhooks = [], subjects = { nodes: [], keys: [] }, payments, now } = known
  const revoked = subjects.keys.filter(({ isGone }) => isGone)
  const deleted = subjects.nodes.filter(({ isGone }) => isGone)
  const own = [
    { name: 'Pages', ...found(text, text === '' ? pages(known) : [...pages(known), OPERATOR]) },
    { name: 'Actions', ...found(text, actions(known)) },
  ]
  if (text === '') return own
  // Someone who pastes a key wants to know which key it is. The browser knows only the first characters of each key.
  const isPasted = (key: { prefix: string }): boolean => text.length > key.prefix.length && text.startsWith(key.prefix)
  const local = [
    ...own,
    { name: 'Nodes', ...nodesFor(text, nodes) },
    {
      name: 'Operate nodes',
      ...bestOf(
        found(text, operationsFor(text, nodes)),
        'action',
        ['such operation of a node', 'such operations of nodes'],
        '/nodes',
      ),
    },
    { name: 'API keys', ...bestOf(found(text, keys.map(ofKey)), 'key', ['API key', 'API keys'], '/developers') },
    {
      name: 'API keys that start like this',
      best: 0,
      commands: [...keys.filter(isPasted).map(ofKey), ...revoked.filter(isPasted).map(ofRevoked)],
    },
    {
      name: 'Webhooks',
      ...bestOf(found(text, webhooks.map(ofWebhook)), 'webhook', ['webhook', 'webhooks'], '/developers/webhooks'),
    },
    {
      name: 'Revoked API keys',
      ...bestOf(found(text, revoked.map(ofRevoked)), 'key', ['revoked API key', 'revoked API keys'], '/activity?kind=keys'),
    },
    {
      name: 'Deleted nodes',
      ...bestOf(found(text, deleted.map(ofDeleted)), 'node', ['deleted node', 'deleted nodes'], '/activity?kind=nodes'),
    },
  ].sort((one, other) => one.best - other.best)
  // Payments come last, because they arrive later and must not move what someone is about to choose.
  return [...local, { name: 'Payments', commands: paymentsFor(text, payments, now) }, docsFor(text)].filter(
    ({ commands }) => commands.length > 0,
  )
}

/** The link to the other nodes counts only those that the search on the Nodes page finds, too. */
function nodesFor(text: string, nodes: DashboardNode[]): Ranked {
  const listed = new Set(filteredNodes(nodes, undefined, text).map(({ id }) => id))
  const path = `/nodes?q=${encodeURIComponent(JSON.stringify(text))}`
  return bestOf(found(text, nodes.map(ofNode)), 'node', ['node', 'nodes'], path, ({ id }) => listed.has(id))
}

/** What is left out becomes one link to the page that has it. */
function bestOf(
  { best, commands }: Ranked,
  kind: Kind,
  [one, many]: [one: string, many: string],
  path: string,
  isOnPage = (_: Command): boolean => true,
): Ranked {
  const more = commands.slice(MOST_OF_A_KIND).filter(isOnPage).length
  const label = `${counted(more, `more ${one}`, `more ${many}`)}…`
  const rest: Command = { id: `more ${many}`, kind, label, act: { kind: 'go', path } }
  return { best, commands: [...commands.slice(0, MOST_OF_A_KIND), ...(more === 0 ? [] : [rest])] }
}

function paymentsFor(text: string, page: Known['payments'], now: number): Command[] {
  if (!page || paymentSearchIn(text) === undefined) return []
  const all: Command = {
    id: 'all payments',
    kind: 'payment',
    label: `All payments that match “${text}”`,
    act: { kind: 'go', path: `/gateway?q=${encodeURIComponent(JSON.stringify(text))}` },
  }
  return [...page.payments.map((payment) => ofPayment(payment, now)), ...(page.nextCursor === null ? [] : [all])]
}

/** Only for words: ids and invoices are not in the documentation, and secrets must not get into a URL. */
function docsFor(text: string): Group {
  const words = paymentSearchIn(text)
  const isWords = words !== undefined && !/[0-9a-z_]{20}/i.test(words)
  const label = `Search the documentation for “${text}”`
  const command: Command = { id: 'docs search', kind: 'docs', label, act: { kind: 'open', href: docsSearch(text) } }
  return { name: 'Documentation', commands: isWords ? [command] : [] }
}
