import { beforeAll, expect, test } from 'vitest'
import type { Server } from '../../server/test/support/server.ts'
import {
  CREDENTIALS,
  closeSecrets,
  dialog,
  go,
  heading,
  inBrowser,
  newContext,
  openKeyDialog,
  readSecrets,
  startDashboard,
  textOf,
  untilText,
} from './harness.ts'
import { untilLoaded } from './pages.ts'

const isFocusedInWindow = (element: any): boolean => {
  const { top, bottom } = element.getBoundingClientRect()
  const { activeElement, defaultView } = element.ownerDocument
  return element === activeElement && top >= 0 && bottom <= defaultView.innerHeight
}

const paddingsOf = (element: any): number[] => {
  const [inner, outer] = [element, element.closest('.card')].map((one) => one.getBoundingClientRect())
  return [inner.top - outer.top - 1, inner.left - outer.left - 1].map(Math.round)
}

const isAboveStepsInWindow = (element: any): boolean => {
  const { top, bottom } = element.getBoundingClientRect()
  const step = element.ownerDocument.querySelector('[data-testid=step-issue]')
  return top >= 0 && bottom <= element.ownerDocument.defaultView.innerHeight && bottom < step.getBoundingClientRect().top
}

inBrowser('the dashboard, from nothing to a paid request', () => {
  let server: Server
  beforeAll(async () => {
    server = await startDashboard()
  })

  test('sign up, create a node, store its credentials, create a key, use it, charge and pay, see it, delete', async () => {
    const context = await newContext()
    const page = await context.newPage()
    await page.goto(server.url)
    await page.getByRole('link', { name: 'Create an account' }).click()
    // The previous page also has a field with this name.
    await heading(page, 'Create an account').waitFor()
    await page.getByLabel('Email').fill('ann@example.com')
    await page.getByLabel('Password', { exact: true }).fill('correct horse battery')
    await page.getByRole('button', { name: 'Create account' }).click()
    await heading(page, 'Overview').waitFor()
    expect(new URL(page.url()).pathname).toBe('/dashboard/')
    await untilText(page.getByTestId('overview-credit'), '10 000 sat')

    // Create a node from the first step of the checklist.
    await page.getByRole('link', { name: 'Create a node' }).click()
    const creating = dialog(page, 'Create a node')
    await creating.getByLabel('Name').fill('shop')
    await creating.getByRole('button', { name: 'Create', exact: true }).click()
    const storing = dialog(page, 'Store the credentials of shop')
    await storing.waitFor()
    for (const name of CREDENTIALS) {
      expect(await textOf(storing.getByRole('region', { name }).locator('pre'))).toMatch(/^•+$/)
    }
    expect(await storing.getByRole('button', { name: 'Close' }).isDisabled()).toBe(true)
    const secrets = await readSecrets(storing, CREDENTIALS)
    expect(secrets['Recovery words']?.split(' ')).toHaveLength(12)
    await closeSecrets(storing)

    // The node becomes ready without a reload, which a marker in the page would not survive.
    await page.evaluate('window.mark = 1')
    await heading(page, 'shop Ready').waitFor()
    expect(await page.evaluate('window.mark')).toBe(1)
    const nodeId = new URL(page.url()).pathname.split('/').pop() ?? ''
    const own = await fetch(`${server.url}/n/${nodeId}/getinfo`, {
      headers: { authorization: `Basic ${Buffer.from(`:${secrets['Full password']}`).toString('base64')}` },
    })
    expect(own.status).toBe(200)

    // Create a key, then use it over HTTP.
    await go(page, 'Developers')
    const making = await openKeyDialog(page)
    await making.getByLabel('Name').fill('Shop server')
    await making.getByRole('button', { name: 'Create key' }).click()
    const keeping = dialog(page, 'Store the key Shop server')
    const key = (await readSecrets(keeping, ['API key']))['API key'] ?? ''
    await closeSecrets(keeping)
    const authorization = `Bearer ${key}`
    const whoAmI = await fetch(`${server.url}/v1/api-key`, { headers: { authorization } })
    expect([whoAmI.status, await whoAmI.json()]).toEqual([
      200,
      expect.objectContaining({ scopes: ['nodes:read', 'gateway:write'] }),
    ])
    const charge = await fetch(`${server.url}/v1/gateway/payments`, {
      method: 'POST',
      headers: { authorization, 'content-type': 'application/json' },
      body: JSON.stringify({ nodeId, amountSat: 700, description: 'By my own program', protocol: 'l402' }),
    })
    expect(charge.status).toBe(201)

    // Charge and pay in the panel, step by step, then all at once.
    await go(page, 'Gateway')
    await page.getByRole('row', { name: /By my own program/ }).waitFor()
    await page.getByRole('tab', { name: 'Try it' }).click()
    for (const verb of [
      'One step at a time',
      'Respond with 402',
      'Pay as a customer',
      'Build the credential',
      'Redeem',
      'Deliver',
    ]) {
      const button = page.getByRole('button', { name: verb, exact: true })
      // The next step is visible and focused, although the previous step has pushed it below the window.
      if (verb !== 'One step at a time') await expect.poll(() => button.evaluate(isFocusedInWindow)).toBe(true)
      await button.click()
    }
    await page.getByTestId('paid').waitFor()
    // This step must not contradict the last step, which says that an L402 credential can be used again.
    await untilText(
      page.getByRole('region', { name: /^Your server redeems/ }),
      'An L402 credential may be redeemed more than once.',
    )
    // What is inside the challenge and the credential is next to them.
    const inside = (name: string) => page.getByRole('region', { name, exact: true })
    await untilText(inside('The challenge, decoded'), /"macaroon": \{.*"invoice": \{.*"amount": "100 sat"/)
    await untilText(inside('The credential, decoded'), /"macaroon": \{.*"preimage": "[0-9a-f]{64}"/)
    await page.getByText('The credential, decoded').click()
    await inside('The credential, decoded').waitFor({ state: 'hidden' })
    // The result is still there when the person comes back.
    await page.getByRole('tab', { name: 'Payments' }).click()
    await page.getByRole('row', { name: /One report/ }).waitFor()
    await page.getByRole('tab', { name: 'Try it' }).click()
    await page.getByTestId('paid').waitFor()
    await page.getByRole('button', { name: 'Start again' }).click()
    await page.getByLabel('Protocol').selectOption('MPP')
    await page.getByLabel('Amount in sat').fill('250')
    await page.getByLabel('Description').fill('One photo')
    await page.getByRole('button', { name: 'Run all steps' }).click()
    await untilText(page.getByTestId('paid'), /^Paid$/)
    // As far from the top of its card as from the side.
    expect(await page.getByTestId('paid').evaluate(paddingsOf)).toEqual([22, 22])
    // The result is in the window and the steps are below it, so nothing has to be scrolled back to.
    await expect.poll(() => page.getByTestId('paid').evaluate(isAboveStepsInWindow)).toBe(true)
    await untilText(inside('The challenge, decoded'), /"method": "lightning".*"request": \{.*"amount": "250"/)
    await untilText(inside('The credential, decoded'), /"challenge": \{.*"payload": \{.*"preimage": "[0-9a-f]{64}"/)
    await untilText(page.getByRole('region', { name: /^Your server delivers/ }), '"method": "lightning"')
    await untilText(page.getByRole('region', { name: /^Your server redeems/ }), '"resource": "GET /report"')
    await untilText(page.getByTestId('held'), 'On shop: 100 sat before, 350 sat now')

    // The payments are in the list and in the chart.
    await page.getByRole('tab', { name: 'Payments' }).click()
    await untilText(page.getByRole('row', { name: /One photo/ }), /Delivered 250 sat MPP shop/)
    await untilText(page.getByRole('row', { name: /One report/ }), /Delivered 100 sat L402 shop/)
    await untilText(page.getByRole('row', { name: /By my own program/ }), /Unpaid 700 sat/)
    await go(page, 'Overview')
    await untilText(page.getByTestId('received-total'), '350 sat')
    await page.locator('.chart canvas').waitFor()
    const table = page.getByRole('table', { name: 'Satoshis received per hour' })
    await expect.poll(async () => (await textOf(table)).match(/\b350\b/g)?.length).toBe(1)
    await untilText(page.getByTestId('funnel-issued'), 'Issued 3')
    await untilText(page.getByTestId('funnel-validated'), 'Validated 2')
    await untilText(page.getByTestId('overview-nodes'), '1 of 1 up')

    // To delete a node with funds, the person must tick a box and type the name.
    await go(page, 'Nodes')
    await page.getByRole('link', { name: /shop/ }).click()
    await page.getByRole('button', { name: 'Fund this node' }).click()
    await untilText(page.getByTestId('balance'), /\d sat/)
    await page.getByRole('tab', { name: 'Settings' }).click()
    // Content that is still loading above the button would move it.
    await untilLoaded(page)
    await page.getByRole('button', { name: 'Delete node…' }).click()
    const deleting = dialog(page, 'Delete shop?')
    await untilText(deleting, /Balance: [1-9][\d ]* sat/)
    const confirm = deleting.getByRole('button', { name: 'Delete with its funds' })
    await deleting.getByRole('checkbox', { name: 'Delete the node even though it holds funds' }).check()
    expect(await confirm.isDisabled()).toBe(true)
    await deleting.getByLabel('Type shop to confirm').fill('shop')
    await confirm.click()
    await heading(page, 'Nodes').waitFor()
    await page.getByText('You have no nodes yet.').waitFor()
    const left = await fetch(`${server.url}/v1/nodes`, { headers: { authorization } })
    expect(await left.json()).toEqual({ nodes: [] })
  })
})
