import type { Page, Route } from 'playwright-core'
import { beforeAll, expect, test } from 'vitest'
import type { Server } from '../../server/test/support/server.ts'
import {
  CREDENTIALS,
  closeSecrets,
  dialog,
  heading,
  inBrowser,
  newPerson,
  openKeyDialog,
  readSecrets,
  startDashboard,
  untilText,
} from './harness.ts'

/** A change that the service makes, although the page does not get its response. */

const tooSlow = (route: Route): Promise<void> =>
  route.fulfill({ status: 504, contentType: 'text/html', body: '<h1>504 Gateway Time-out</h1>' })
const loginPage = (route: Route): Promise<void> =>
  route.fulfill({ status: 200, contentType: 'text/html', body: '<h1>Welcome to the hotel</h1>' })

/** The first POST reaches the service, and the page gets `reply` instead of its response. `then` handles the later ones. */
async function disturb(page: Page, path: string, reply: typeof tooSlow, then?: (route: Route, time: number) => unknown) {
  let posts = 0
  await page.route(`**/dashboard/api${path}`, async (route) => {
    if (route.request().method() !== 'POST') return route.continue()
    posts++
    if (posts > 1) return (await then?.(route, posts)) === undefined ? route.continue() : undefined
    await route.fetch({ timeout: 0 })
    await reply(route)
  })
}

inBrowser('when the page does not learn what became of a change', () => {
  let server: Server
  beforeAll(async () => {
    server = await startDashboard()
  })

  test.each([
    ['a proxy that did not wait', tooSlow],
    ['a page of the hotel’s network', loginPage],
  ])('C30: %s instead of the response to Send: the page does not say that nothing was sent', async (_name, reply) => {
    const person = await newPerson(server)
    const { page } = person
    const [purse, shop] = await Promise.all([
      person.createReady({ name: 'purse', accessMode: 'full' }),
      person.createReady({ name: 'shop' }),
    ])
    for (const { node } of [purse, shop])
      await person.want(200, 'POST', `/sandbox/nodes/${node.id}/fund`, { json: { amountSat: 50_000 } })
    const { invoice } = await person.want(201, 'POST', `/nodes/${shop.node.id}/invoices`, {
      json: { amountSat: 700, description: 'a cake' },
    })
    await disturb(page, `/nodes/${purse.node.id}/pay`, reply)
    await person.open(`nodes/${purse.node.id}?tab=send`)
    const send = async (): Promise<void> => {
      await page.getByLabel('Invoice', { exact: true }).fill(invoice)
      await page.getByRole('button', { name: 'Send…' }).click()
      await dialog(page, 'Send this payment?').getByRole('button', { name: 'Send now' }).click()
    }
    await send()
    await page.getByText('This payment may or may not have been sent').waitFor()
    expect(await page.getByText('Nothing was sent').count()).toBe(0)
    await page.getByLabel('Invoice', { exact: true }).fill('')
    await send()
    await page.getByText('This invoice was already paid').waitFor()
    const { payments } = await person.want(200, 'GET', `/nodes/${purse.node.id}/payments`)
    expect(payments.filter(({ amountSat }: { amountSat: number }) => amountSat === 700)).toHaveLength(1)
  })

  test('C17: refused after an attempt without a response: the page says that the node may exist, and the next attempt shows its seed', async () => {
    const person = await newPerson(server)
    const { page } = person
    const limited = async (route: Route, time: number) => {
      if (time > 2) return
      await route.fulfill({ status: 429, json: { error: { code: 'rate_limited', message: 'rate limit exceeded' } } })
      return 'fulfilled'
    }
    await disturb(page, '/nodes', tooSlow, limited)
    await person.open('nodes?create=true')
    const creating = dialog(page, 'Create a node')
    const alert = creating.getByRole('alert')
    const create = (): Promise<void> => creating.getByRole('button', { name: 'Create', exact: true }).click()
    await create()
    await untilText(alert, 'This may or may not have worked.')
    await untilText(alert, 'Keep this dialog open')
    await create()
    await untilText(alert, 'The node may have been created.')
    await create()
    const storing = dialog(page, /Store the credentials/)
    expect((await readSecrets(storing, CREDENTIALS))['Recovery words']?.split(' ')).toHaveLength(12)
    await closeSecrets(storing)
    await heading(page, /Ready/).waitFor()
    expect((await person.want(200, 'GET', '/nodes')).nodes).toHaveLength(1)
  })

  test('C10: if the value of a new key was lost on the way, the page says to revoke the key', async () => {
    const person = await newPerson(server)
    const { page } = person
    await disturb(page, '/keys', tooSlow)
    await person.open('developers')
    const creating = await openKeyDialog(page)
    await creating.getByLabel('Name').fill('lost')
    await creating.getByRole('button', { name: 'Create key' }).click()
    await untilText(creating.getByRole('alert'), /This may or may not have worked.*revoke it: its value cannot be shown again/)
  })
})
