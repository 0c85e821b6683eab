import type { Page } from 'playwright-core'
import { beforeAll, expect, test } from 'vitest'
import { fault, isRunning, runningPidOf } from '../../server/test/support/nodes.ts'
import { eventually, type Server } from '../../server/test/support/server.ts'
import {
  CREDENTIALS,
  closeSecrets,
  dialog,
  go,
  heading,
  inBrowser,
  newPerson,
  readSecrets,
  startDashboard,
  textOf,
  untilText,
} from './harness.ts'

/** Every balance the page ever showed, because even a zero for one frame is alarming. */
async function watchBalance(page: Page): Promise<() => Promise<string[]>> {
  await page.addInitScript(`
    window.balances = new Set()
    const look = () => {
      const text = document.querySelector('[data-testid=balance]')?.textContent
      if (text) window.balances.add(text.replace(/\\s+/g, ' '))
    }
    new MutationObserver(look).observe(document, { subtree: true, childList: true, characterData: true })
  `)
  return () => page.evaluate<string[]>('[...window.balances]')
}

inBrowser('when things go wrong in the dashboard', () => {
  let server: Server
  beforeAll(async () => {
    server = await startDashboard()
  })

  test('a double click on Create creates one node', async () => {
    const person = await newPerson(server)
    const { page } = person
    await person.open('nodes?create=true')
    const create = dialog(page, 'Create a node').getByRole('button', { name: 'Create', exact: true })
    // All in one tick, before the page can show that the first click is pending.
    await create.evaluate((button: any) => {
      button.click()
      button.click()
      button.form.requestSubmit()
    })
    await dialog(page, /Store the credentials/).waitFor()
    const { nodes } = await person.want(200, 'GET', '/nodes')
    expect(nodes).toHaveLength(1)
  })

  test('a lost response does not lose the seed: the second attempt shows the credentials of the same node', async () => {
    const person = await newPerson(server)
    const { page } = person
    let lost = 0
    await page.route('**/dashboard/api/nodes', async (route) => {
      if (route.request().method() !== 'POST' || lost++ > 0) return route.continue()
      await route.fetch({ timeout: 0 })
      await route.abort('connectionreset')
    })
    await person.open('nodes?create=true')
    const creating = dialog(page, 'Create a node')
    await creating.getByRole('button', { name: 'Create', exact: true }).click()
    // The page does not claim that the node was not created, and shows a request id although there was no response.
    const alert = creating.getByRole('alert')
    for (const part of ['This may or may not have worked.', 'The service did not respond.', 'Press Create again']) {
      await untilText(alert, part)
    }
    const [, requestId = '(no id)'] = /Request id (\w+)/.exec(await textOf(alert)) ?? []
    await eventually(() => server.stderr.includes(requestId), 'the request id in the log')
    await creating.getByRole('button', { name: 'Create', exact: true }).click()
    const storing = dialog(page, /Store the credentials/)
    const secrets = await readSecrets(storing, CREDENTIALS)
    expect(secrets['Recovery words']?.split(' ')).toHaveLength(12)
    await closeSecrets(storing)
    await heading(page, /Ready/).waitFor()
    expect((await person.want(200, 'GET', '/nodes')).nodes).toHaveLength(1)
  })

  test('Back returns to the previous page, tab by tab, and closes dialogs; Forward does not create anything again', async () => {
    const person = await newPerson(server)
    const { page } = person
    const { node } = await person.createReady({ name: 'there' })
    await person.open()
    await go(page, 'Nodes')
    await page.getByRole('button', { name: 'Create node' }).click()
    await dialog(page, 'Create a node').waitFor()
    await page.goBack()
    await dialog(page, 'Create a node').waitFor({ state: 'detached' })
    await heading(page, 'Nodes').waitFor()

    await page.getByRole('link', { name: /there/ }).click()
    await page.getByRole('tab', { name: 'Connect' }).click()
    await page.getByRole('tab', { name: 'Settings' }).click()
    await page.getByLabel('Name of the node').waitFor()
    await page.goBack()
    await page.getByRole('tab', { name: 'Connect', selected: true }).waitFor()
    await page.goBack()
    await page.getByTestId('balance').waitFor()
    await page.goBack()
    await heading(page, 'Nodes').waitFor()
    await page.goForward()
    await heading(page, 'there Ready').waitFor()
    expect((await person.want(200, 'GET', '/nodes')).nodes.map(({ id }: { id: string }) => id)).toEqual([node.id])
  })

  test('two tabs see each other’s changes', async () => {
    const person = await newPerson(server)
    const { page, context } = person
    const { node } = await person.createReady({ name: 'before' })
    await person.open('nodes')
    await page.getByRole('link', { name: /before/ }).waitFor()
    const second = await context.newPage()
    await second.goto(`${server.url}/dashboard/nodes/${node.id}?tab=settings`)
    await second.getByLabel('Name of the node').fill('after')
    await second.getByRole('button', { name: 'Rename' }).click()
    await heading(second, 'after Ready').waitFor()
    await page.getByRole('link', { name: /after/ }).waitFor()

    await second.getByRole('button', { name: 'Stop…' }).click()
    await dialog(second, 'Stop after?').getByRole('button', { name: 'Stop node' }).click()
    await untilText(page.getByRole('row', { name: /after/ }), 'Stopped')
    await second.getByRole('button', { name: 'Start', exact: true }).click()
    await untilText(page.getByRole('row', { name: /after/ }), 'Ready')

    // The page also shows what a program does with a key.
    await go(page, 'Gateway')
    await page.getByText('No payments yet.').waitFor()
    const owner = await person.owner()
    await owner.want(201, 'POST', '/gateway/payments', {
      json: { nodeId: node.id, amountSat: 40, description: 'From elsewhere', protocol: 'mpp' },
    })
    await page.getByRole('row', { name: /From elsewhere/ }).waitFor()
  })

  test('if the service restarts, an open page says so, reconnects and catches up', async () => {
    const person = await newPerson(server)
    const { page } = person
    await person.createReady({ name: 'one' })
    await person.open('nodes')
    await page.getByRole('link', { name: /one/ }).waitFor()
    await page.evaluate('window.mark = 1')
    await server.stop()
    const banner = page.getByText('The connection to the service is lost.')
    await banner.waitFor()
    // Existing content stays visible.
    expect(await page.getByRole('link', { name: /one/ }).isVisible()).toBe(true)

    await page.route('**/dashboard/api/events', (route) => route.abort())
    await server.start()
    await person.create({ name: 'two' })
    expect(await page.getByRole('link', { name: /two/ }).count()).toBe(0)
    await page.unroute('**/dashboard/api/events')
    await banner.waitFor({ state: 'detached' })
    await untilText(page.getByRole('row', { name: /two/ }), 'Ready')
    expect(await page.evaluate('window.mark')).toBe(1)
  })

  test('if the app’s code cannot be loaded, the page loads again by itself; if that does not help, it says so', async () => {
    const { page, open } = await newPerson(server)
    const code = /\/assets\/index-[^/]*\.js$/
    let lost = 0
    await page.route(code, (route) => (lost++ < 2 ? route.abort() : route.continue()))
    await open()
    await heading(page, 'Overview').waitFor()
    expect(lost).toBe(3)

    await page.unroute(code)
    await page.route(code, (route) => route.abort())
    // The styles are lost too, and first.
    const styles = /\/assets\/index-[^/]*\.css$/
    await page.route(styles, (route) => route.abort())
    await open()
    await untilText(page.getByRole('alert'), 'Boltyard could not be loaded. Check your connection, then reload the page.')
    await page.unroute(code)
    await page.unroute(styles)
    await page.getByRole('button', { name: 'Reload' }).click()
    await heading(page, 'Overview').waitFor()
    await page.waitForFunction(`sessionStorage.getItem('boltyard-start-attempts') === null`)

    // Without its styles the app can still be used, so it is not reloaded for ever.
    let loads = 0
    await page.route(styles, (route) => {
      loads++
      return route.abort()
    })
    await open()
    await expect.poll(() => loads).toBe(4)
    await heading(page, 'Overview').waitFor()
    expect(await page.evaluate(`sessionStorage.getItem('boltyard-start-attempts')`)).toBe('3')
  })

  test('if other pages cannot be loaded ahead, the open page is not reloaded', async () => {
    const person = await newPerson(server)
    const { page } = person
    const refused = new Set<string>()
    await page.route(/\/assets\/(try-it|credit)-[^/]*\.js$/, async (route) => {
      await route.abort()
      refused.add(route.request().url())
    })
    await person.open('nodes')
    await heading(page, 'Nodes').waitFor()
    await page.evaluate('window.mark = 1')
    // The pages are loaded one after the other: once the second has been tried, the failure of the first has been handled.
    await expect.poll(() => refused.size).toBe(2)
    expect(await page.evaluate('window.mark')).toBe(1)
  })

  test('a page that fails to load says what, why, what next and the request id, and loads on retry', async () => {
    const person = await newPerson(server)
    const { page } = person
    await person.open()
    await heading(page, 'Overview').waitFor()
    await page.route('**/dashboard/api/credit', (route) =>
      route.fulfill({
        status: 500,
        contentType: 'application/json',
        body: JSON.stringify({ error: { code: 'internal_error', message: 'Something broke.', requestId: 'req_for_the_test' } }),
      }),
    )
    await go(page, 'Credit')
    const problem = page.getByRole('alert')
    for (const part of ['Your credit could not be loaded.', 'Something broke.', 'Try again.', 'req_for_the_test']) {
      await untilText(problem, part)
    }
    await page.unroute('**/dashboard/api/credit')
    await problem.getByRole('button', { name: 'Try again' }).click()
    await untilText(page.getByTestId('credit-balance'), '10 000 sat')
  })

  test('a node without its peer or process, or stopped: a clear explanation, a next step, and never a balance of zero', async () => {
    const person = await newPerson(server)
    const { page } = person
    const created = await person.createReady({ name: 'funded' })
    const { node } = created
    await person.want(200, 'POST', `/sandbox/nodes/${node.id}/fund`, { json: { amountSat: 50_000 } })
    const balances = await watchBalance(page)
    await person.open(`nodes/${node.id}`)
    await page.getByTestId('balance').waitFor()
    const balance = await textOf(page.getByTestId('balance'))
    expect(balance).toMatch(/^[1-9]\d \d{3} sat$/)
    const unknown = page.getByTestId('balance-unknown')

    await fault(server, created, 'peer_down')
    await untilText(unknown, /unknown while the channels are offline. Your money is safe/)
    await fault(server, created, 'none')
    await untilText(page.getByTestId('balance'), balance)

    const pid = runningPidOf(server, node)
    process.kill(pid, 'SIGSTOP')
    await untilText(unknown, /is not responding, so its balance is unknown. If the node has crashed/)
    // On a slow machine, the service may already have killed the daemon, because it hangs.
    if (isRunning(pid)) process.kill(pid, 'SIGKILL')
    await page.getByTestId('balance').waitFor()
    await untilText(page.getByTestId('balance'), balance)

    await page.getByRole('tab', { name: 'Settings' }).click()
    // The page asks first, because customers can no longer pay.
    await page.getByRole('button', { name: 'Stop…' }).click()
    const asking = dialog(page, 'Stop funded?')
    await untilText(asking, 'Customers cannot pay this node until you start it again.')
    await asking.getByRole('button', { name: 'Cancel' }).click()
    await asking.waitFor({ state: 'detached' })
    expect((await person.want(200, 'GET', `/nodes/${node.id}`)).status).toBe('ready')
    await page.getByRole('button', { name: 'Stop…' }).click()
    await asking.getByRole('button', { name: 'Stop node' }).click()
    await heading(page, 'funded Stopped').waitFor()
    await page.getByRole('tab', { name: 'Overview' }).click()
    await page.getByText('The node is stopped. Its money and data are safe').waitFor()
    await page.getByText('The node is stopped. Your money is safe. The current balance appears when the node is ready.').waitFor()
    await page.getByRole('button', { name: 'Start', exact: true }).click()
    await heading(page, 'funded Ready').waitFor()
    await untilText(page.getByTestId('balance'), balance)
    expect(await balances()).toEqual([balance])
  })

  test('C32: no credit: nothing is created, and the missing amount can be paid on the spot; then the same click creates the node', async () => {
    const person = await newPerson(server)
    const { page } = person
    await server.operator('POST', `/accounts/${person.accountId}/credit`, { json: { amountSat: -9_950, reason: 'test' } })
    await person.open('nodes?create=true')
    const creating = dialog(page, 'Create a node')
    await creating.getByLabel('Name').fill('afford')
    await creating.getByRole('button', { name: 'Create', exact: true }).click()
    await untilText(creating.getByRole('alert'), 'The node was not created.')
    await untilText(creating, 'You need 50 sat more credit')
    expect((await person.want(200, 'GET', '/nodes')).nodes).toEqual([])
    await creating.getByRole('button', { name: 'Pay as a customer' }).click()
    await untilText(creating.getByTestId('paid'), 'Paid 50 sat')
    // Neither the refusal nor the paid invoice is shown any more.
    expect(await creating.getByRole('alert').count()).toBe(0)
    expect(await creating.getByRole('img', { name: 'QR code of the invoice' }).count()).toBe(0)
    await creating.getByRole('button', { name: 'Create', exact: true }).click()
    await closeSecrets(dialog(page, 'Store the credentials of afford'))
    await heading(page, 'afford Ready').waitFor()
  })

  test('credit is topped up over Lightning: the balance and the ledger show it without a reload', async () => {
    const person = await newPerson(server)
    const { page } = person
    await person.open('credit')
    await untilText(page.getByTestId('credit-balance'), '10 000 sat')
    await page.getByLabel('Amount in sat').fill('5000')
    await page.getByRole('button', { name: 'Create invoice' }).click()
    await page.getByRole('img', { name: 'QR code of the invoice' }).waitFor()
    await page.getByRole('button', { name: 'Pay as a customer' }).click()
    await untilText(page.getByTestId('paid'), 'Paid 5 000 sat')
    expect(await page.getByRole('button', { name: 'Copy invoice' }).count()).toBe(0)
    await untilText(page.getByTestId('credit-balance'), '15 000 sat')
    await untilText(page.getByRole('row', { name: /Top-up/ }), '+5 000 sat')

    // The export has the entries that are shown.
    const exported = async () => {
      const href = await page.getByRole('link', { name: /^Export (all|these) as CSV$/ }).getAttribute('href')
      const file = await page.request.get(new URL(href ?? '', server.url).href)
      return (await file.text()).split('\r\n').flatMap((line) => line.split(',')[2] ?? [])
    }
    expect(await exported()).toEqual(['kind', 'signup', 'top_up'])
    await page.getByLabel('Kind').selectOption('Top-up')
    await page.getByRole('link', { name: 'Export these as CSV' }).waitFor()
    expect(await exported()).toEqual(['kind', 'top_up'])
  })
})
