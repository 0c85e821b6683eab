import type { Page } from 'playwright-core'
import { offerIn } from '../../protocol/src/offers.ts'
import { eventually } from '../../server/test/support/server.ts'
import { dialog, newContext, openKeyDialog, type Person } from './harness.ts'

/** All pages, with content. */

type Furnished = { nodeId: string; stoppedId: string; paymentId: string; openId: string; webhookId: string }

/** Creates a running and a stopped node, a paid and an unpaid payment, a key, and a webhook that fails. */
export async function furnish(person: Person): Promise<Furnished> {
  const [shop, idle] = await Promise.all([
    person.createReady({ name: 'shop', accessMode: 'full' }),
    person.createReady({ name: 'WWWWWWWWWWWWWWWW' }),
  ])
  const nodeId = shop.node.id
  await person.want(200, 'POST', `/sandbox/nodes/${nodeId}/fund`, { json: { amountSat: 1_234_567 } })
  await person.want(200, 'POST', `/nodes/${idle.node.id}/stop`, { json: {} })
  // Nothing listens on this port.
  const unreachable = { url: `http://127.0.0.1:9/${'w'.repeat(200)}`, nodeIds: [nodeId], description: 'Shop server' }
  const webhook = await person.want(201, 'POST', '/webhooks', { json: unreachable })
  // The longest description, without spaces.
  const unbreakable = { nodeId, amountSat: 21, description: 'W'.repeat(128), protocol: 'mpp' }
  const open = await person.want(201, 'POST', '/payments', { json: unbreakable })
  const id = await payCharge(person, nodeId, 1_234_567, 'Weather report', 'redeem')
  // One of the longest relative times, which must still fit into its column.
  const sql = person.server.sql()
  await sql`UPDATE gateway_payments SET created_at = now() - interval '56 minutes' WHERE account_id = ${person.accountId}`
  await sql.end()
  // The cost of the stopped node appears in the ledger within half a minute.
  await eventually(
    async () => (await person.want(200, 'GET', '/credit')).entries.some(({ kind }: { kind: string }) => kind === 'usage'),
    'the usage to be posted',
  )
  const expiresAt = Math.floor(Date.now() / 1000) + 86_400
  const json = { name: 'Shop server', scopes: ['nodes:read', 'gateway:write'], expiresAt }
  const { id: keyId, key } = await person.want(201, 'POST', '/keys', { json })
  await person.server.send('GET', '/v1/nodes/node_00000000000000000000', { token: key })
  await person.want(200, 'POST', `/keys/${keyId}/rotate`, { json: { overlapSeconds: 3600 } })
  await eventually(async () => (await person.want(200, 'GET', '/requests')).requests.length > 0, 'the request to be logged')
  await signInAsOperator(person)
  return { nodeId, stoppedId: idle.node.id, paymentId: id, openId: open.id, webhookId: webhook.id }
}

/** Signs in as the operator in the person's browser, which keeps the person's own session. */
async function signInAsOperator({ server, origin, context }: Person): Promise<void> {
  const json = { token: server.operatorToken }
  const { headers } = await server.send('POST', '/dashboard/api/operator/session', { headers: { origin }, json })
  const [, name = '', value = ''] = /^([^=]+)=([^;]+)/.exec(headers['set-cookie']?.[0] ?? '') ?? []
  await context.addCookies([{ name, value, url: server.url }])
}

/** Creates a payment, pays it and validates or redeems its credential. Returns its id. */
export async function payCharge(
  person: Person,
  nodeId: string,
  amountSat: number,
  description = 'Tea',
  verb: 'validate' | 'redeem' = 'validate',
): Promise<string> {
  const json = { nodeId, amountSat, description, protocol: 'l402' }
  const { id, challenge } = await person.want(201, 'POST', '/payments', { json })
  const credential = await payChallenge(person, challenge)
  await person.want(200, 'POST', `/payments/${id}/${verb}`, { json: { credential } })
  return id
}

/** Pays the challenge and returns the credential. */
export async function payChallenge(person: Person, challenge: string): Promise<string> {
  const offer = offerIn(challenge)
  const { preimage } = await person.want(200, 'POST', '/sandbox/pay', { json: { invoice: offer.invoiceText } })
  return offer.credentialFor(preimage)
}

export function pathsOf({ nodeId, stoppedId, paymentId, openId, webhookId }: Furnished): string[] {
  const tabs = ['payments', 'connect', 'invoice', 'send', 'log', 'settings'].map((tab) => `nodes/${nodeId}?tab=${tab}`)
  const node = [`nodes/${nodeId}`, ...tabs, `nodes/${stoppedId}`, `nodes/${stoppedId}?tab=send`]
  const payments = [
    'gateway?period=custom&from=2026-01-01&to=2099-12-31&min=1',
    `gateway/payments/${paymentId}`,
    `gateway/payments/${openId}`,
  ]
  const gateway = ['gateway', 'gateway/try-it', ...payments]
  return [
    '',
    'nodes',
    'nodes?create=true',
    ...node,
    ...gateway,
    'developers',
    'developers#key',
    'developers/requests',
    'developers/requests#request',
    'developers/webhooks',
    'developers/webhooks#webhook',
    `developers/webhooks/${webhookId}`,
    `developers/webhooks/${webhookId}#attempts`,
    'credit',
    'activity',
    'settings',
    'settings#two-factor',
    'settings#email',
    ...['', '#access', '/nodes', '/deleted', '/installation', '/statistics', '/background'].map((page) => `operator${page}`),
    'no-such-page',
  ]
}

export const GATES = ['sign-in', 'sign-up', 'link', 'operator']

/** Waits until nothing is loading. */
export async function untilLoaded(page: Page): Promise<void> {
  await page.getByRole('heading', { level: 1 }).or(page.getByRole('dialog')).first().waitFor()
  await eventually(async () => (await page.locator('[aria-busy=true]').count()) === 0, 'the page to be loaded')
}

/** Steps needed before all of a page is visible. */
export const SCENES: Record<string, (page: Page) => Promise<unknown>> = {
  'gateway/try-it': async (page) => {
    await page.getByLabel('Protocol').selectOption('MPP')
    await page.getByRole('button', { name: 'Run all steps' }).click()
    await page.getByTestId('paid').waitFor()
  },
  credit: async (page) => {
    await page.getByRole('button', { name: 'Create invoice' }).click()
    await page.getByRole('img', { name: 'QR code of the invoice' }).waitFor()
  },
  'tab=invoice': async (page) => {
    await page.getByLabel('Description').fill('Two coffees')
    await page.getByRole('button', { name: 'Create invoice' }).click()
    await page.getByRole('img', { name: 'QR code of the invoice' }).waitFor()
  },
  'tab=settings': async (page) => {
    await page.getByRole('button', { name: 'Delete node…' }).click()
    await dialog(page, /^Delete/).waitFor()
  },
  '#key': async (page) => {
    const making = await openKeyDialog(page)
    await making.getByLabel('Name').fill('Once')
    await making.getByRole('button', { name: 'Create key' }).click()
    await dialog(page, 'Store the key Once').getByRole('button', { name: 'Show API key' }).click()
    await dialog(page, 'Store the key Once').getByRole('checkbox', { name: 'I have stored it' }).check()
  },
  '#two-factor': async (page) => {
    await page.getByRole('button', { name: 'Set up…' }).click()
    const setUp = dialog(page, 'Set up two-factor sign-in')
    await setUp.getByLabel('Your password').fill('correct horse battery')
    await setUp.getByRole('button', { name: 'Continue' }).click()
    await setUp.getByRole('img', { name: 'QR code for your authenticator app' }).waitFor()
  },
  '#email': async (page) => {
    await page.getByRole('button', { name: 'Change email…' }).click()
    await dialog(page, 'Change your email address').waitFor()
  },
  '#request': async (page) => {
    await page.getByRole('button', { name: 'GET /v1/nodes/{nodeId}' }).first().click()
    await dialog(page, 'Request').getByText('node_not_found').waitFor()
  },
  '#access': async (page) => {
    await page
      .getByRole('button', { name: /^Give access/ })
      .first()
      .click()
    await page.getByRole('button', { name: 'Create and copy link' }).click()
    await page.getByRole('button', { name: 'Copy link' }).waitFor()
  },
  '#webhook': async (page) => {
    await page.getByRole('button', { name: 'Create webhook' }).click()
    const making = dialog(page, 'Create a webhook')
    await making.getByRole('radio', { name: 'Only selected events' }).check()
    await making.getByRole('radio', { name: 'Only selected nodes' }).check()
  },
  '#attempts': async (page) => {
    await page.getByRole('button', { name: 'Send test event' }).click()
    await page.getByRole('status', { name: 'Result of the test' }).getByText('No response').waitFor()
    await page
      .getByText(/^\d attempts?$/)
      .first()
      .click()
  },
  'create=true': async (page) => {
    await dialog(page, 'Create a node').waitFor()
  },
}

/** Visits each page with its scene, including the pages before sign-in. */
export async function visitAll(
  person: Person,
  paths: string[],
  look: (page: Page, path: string) => Promise<void>,
): Promise<void> {
  for (const path of paths) {
    // Two scenes of one page differ only in the fragment, which would not load the page again: the dialog of the first would still be open.
    await person.page.goto('about:blank')
    const page = await person.open(path)
    await untilLoaded(page)
    for (const [key, act] of Object.entries(SCENES)) if (path.endsWith(key)) await act(page)
    await look(page, path)
  }
  const options = { viewport: person.page.viewportSize() }
  const stranger = await (await newContext(options)).newPage()
  for (const path of GATES) {
    await stranger.goto(`${person.server.url}/dashboard/${path}`)
    await untilLoaded(stranger)
    await look(stranger, path)
  }
}
