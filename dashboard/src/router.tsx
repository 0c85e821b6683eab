import { createRootRoute, createRoute, createRouter, Outlet, redirect } from '@tanstack/react-router'
import { type ActivityFilter, activityFilterIn } from './api/activity.ts'
import { type LedgerFilter, ledgerFilterIn } from './api/credit.ts'
import { type RequestFilter, requestFilterOf } from './api/developers.ts'
import { type PaymentPlace, paymentPlaceIn } from './api/payments.ts'
import { DELIVERY_STATUSES, meQuery, overviewQuery, queryClient } from './api/queries.ts'
import { nextAfterSession, noteSignedIn } from './api/session.ts'
import type { DeliveryStatus } from './api/types.ts'
import { lazyPage } from './components/layout/lazy-page.tsx'
import { Shell } from './components/layout/shell.tsx'
import { history } from './history.ts'
import { safeNext } from './next.ts'
import { Broken, Missing } from './pages/broken.tsx'
import { NODE_ORDERS, type NodeOrder } from './pages/nodes/node-sort.ts'
import { NODE_TABS, type NodeTab } from './tabs.ts'
import { NODE_FILTER_NAMES, type NodeFilter } from './text/node-filter.ts'

const root = createRootRoute({ component: Outlet, notFoundComponent: Missing, errorComponent: Broken })

/** Pages for people who are not signed in. */
const gate = createRoute({
  getParentRoute: () => root,
  id: 'gate',
  loader: () => queryClient.ensureQueryData(meQuery),
})

const signIn = createRoute({
  getParentRoute: () => gate,
  path: '/sign-in',
  validateSearch: (search): { next?: string | undefined } => ({ next: safeNext(search.next) }),
  component: lazyPage(() => import('./pages/sign-in.tsx'), 'SignIn'),
})

const signUp = createRoute({
  getParentRoute: () => gate,
  path: '/sign-up',
  component: lazyPage(() => import('./pages/sign-up.tsx'), 'SignUp'),
})

const link = createRoute({
  getParentRoute: () => gate,
  path: '/link',
  component: lazyPage(() => import('./pages/link.tsx'), 'LinkPage'),
})

const app = createRoute({
  getParentRoute: () => root,
  id: 'app',
  component: Shell,
  beforeLoad: async () => {
    const me = await queryClient.ensureQueryData(meQuery)
    const { pathname, search } = window.location
    const here = pathname + search
    if (!me.user) throw redirect({ to: '/sign-in', search: { next: nextAfterSession(here) }, replace: true })
    noteSignedIn(true)
  },
})

const overview = createRoute({
  getParentRoute: () => app,
  path: '/',
  // Fetched while the page's code is still loading.
  loader: () => void queryClient.prefetchQuery(overviewQuery),
  component: lazyPage(() => import('./pages/overview/overview.tsx'), 'OverviewPage'),
})

type NodesSearch = {
  create?: true | undefined
  show?: NodeFilter | undefined
  q?: string | undefined
  sort?: NodeOrder | undefined
}

const nodes = createRoute({
  getParentRoute: () => app,
  path: '/nodes',
  validateSearch: (search): NodesSearch => ({
    create: search.create ? true : undefined,
    sort: NODE_ORDERS.find((order) => order === search.sort),
    show: NODE_FILTER_NAMES.find((show) => show === search.show),
    q: typeof search.q === 'string' || typeof search.q === 'number' ? String(search.q) : undefined,
  }),
  component: lazyPage(() => import('./pages/nodes/nodes.tsx'), 'NodesPage'),
})

const node = createRoute({
  getParentRoute: () => app,
  path: '/nodes/$nodeId',
  validateSearch: (search): { tab?: NodeTab | undefined } => ({ tab: NODE_TABS.find((tab) => tab === search.tab) }),
  component: lazyPage(() => import('./pages/node/node.tsx'), 'NodePage'),
})

const gateway = createRoute({
  getParentRoute: () => app,
  path: '/gateway',
  validateSearch: (search): PaymentPlace => paymentPlaceIn(search),
  component: lazyPage(() => import('./pages/payments/payments.tsx'), 'PaymentsPage'),
})

const tryIt = createRoute({
  getParentRoute: () => app,
  path: '/gateway/try-it',
  component: lazyPage(() => import('./pages/try-it/try-it.tsx'), 'TryItPage'),
})

const payment = createRoute({
  getParentRoute: () => app,
  path: '/gateway/payments/$paymentId',
  component: lazyPage(() => import('./pages/payments/payment.tsx'), 'PaymentPage'),
})

const developers = createRoute({
  getParentRoute: () => app,
  path: '/developers',
  validateSearch: (search): { create?: true | undefined } => ({ create: search.create ? true : undefined }),
  component: lazyPage(() => import('./pages/developers/keys.tsx'), 'DevelopersPage'),
})

const requests = createRoute({
  getParentRoute: () => app,
  path: '/developers/requests',
  validateSearch: (search): RequestFilter => requestFilterOf(search),
  component: lazyPage(() => import('./pages/developers/requests.tsx'), 'RequestsPage'),
})

const webhooks = createRoute({
  getParentRoute: () => app,
  path: '/developers/webhooks',
  component: lazyPage(() => import('./pages/webhooks/webhooks.tsx'), 'WebhooksPage'),
})

const webhook = createRoute({
  getParentRoute: () => app,
  path: '/developers/webhooks/$webhookId',
  validateSearch: (search): { status?: DeliveryStatus | undefined } => ({
    status: DELIVERY_STATUSES.find((status) => status === search.status),
  }),
  component: lazyPage(() => import('./pages/webhooks/webhook.tsx'), 'WebhookPage'),
})

const credit = createRoute({
  getParentRoute: () => app,
  path: '/credit',
  validateSearch: (search): LedgerFilter => ledgerFilterIn(search),
  component: lazyPage(() => import('./pages/credit/credit.tsx'), 'CreditPage'),
})

const activity = createRoute({
  getParentRoute: () => app,
  path: '/activity',
  validateSearch: (search): ActivityFilter => activityFilterIn(search),
  component: lazyPage(() => import('./pages/activity/activity.tsx'), 'ActivityPage'),
})

const settings = createRoute({
  getParentRoute: () => app,
  path: '/settings',
  component: lazyPage(() => import('./pages/settings/settings.tsx'), 'SettingsPage'),
})

/** The operator's pages have their own sign-in, navigation and routes, in one chunk. */
const operator = createRoute({
  getParentRoute: () => root,
  path: '/operator/{-$section}/{-$id}',
  validateSearch: (search): { search?: string | undefined; state?: string | undefined } => ({
    search: typeof search.search === 'string' && search.search !== '' ? search.search : undefined,
    state: typeof search.state === 'string' ? search.state : undefined,
  }),
  loader: () => queryClient.ensureQueryData(meQuery),
  component: lazyPage(() => import('./pages/operator/operator.tsx'), 'OperatorPages', false),
})

/** Shown inside the app, so that the navigation is available. */
const missing = createRoute({ getParentRoute: () => app, path: '$', component: Missing })

const routeTree = root.addChildren([
  gate.addChildren([signIn, signUp, link]),
  operator,
  app.addChildren([
    overview,
    nodes,
    node,
    gateway,
    tryIt,
    payment,
    developers,
    requests,
    webhooks,
    webhook,
    credit,
    activity,
    settings,
    missing,
  ]),
])

export const router = createRouter({
  routeTree,
  history,
  basepath: '/dashboard',
  defaultPreload: 'intent',
  scrollRestoration: true,
})

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router
  }
  interface HistoryState {
    /** The list from which a payment was opened. */
    paymentList?: PaymentPlace
  }
}
