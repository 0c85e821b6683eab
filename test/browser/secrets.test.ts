import type { BrowserContext, Page } from 'playwright-core'
import { beforeAll, expect, test } from 'vitest'
import type { Server } from '../../server/test/support/server.ts'
import {
  CREDENTIALS,
  closeSecrets,
  dialog,
  go,
  heading,
  inBrowser,
  newPerson,
  openKeyDialog,
  type Person,
  readSecrets,
  startDashboard,
  textOf,
  untilText,
} from './harness.ts'

/** Everything the browser keeps of a page: content, input and storage. */
async function traces(page: Page): Promise<string> {
  const kept = await page.evaluate<string>(`JSON.stringify([
    [...document.querySelectorAll('input, textarea')].map(({ value }) => value),
    Object.entries(localStorage), Object.entries(sessionStorage), history.state, location.href, document.title,
    performance.getEntries().map(({ name }) => name),
  ])`)
  return (await page.content()) + kept + JSON.stringify(await page.context().cookies())
}

/** All responses to pages of this browser, except streams, which never end. */
function recordAnswers(context: BrowserContext): { text: () => Promise<string> } {
  const bodies: Promise<string>[] = []
  context.on('response', (response) => {
    if (response.headers()['content-type']?.startsWith('application/json')) bodies.push(response.text().catch(() => ''))
  })
  return { text: async () => (await Promise.all(bodies.splice(0))).join('\n') }
}

inBrowser('secrets are shown once', () => {
  let server: Server
  beforeAll(async () => {
    // Nodes are free, so no treasury node has to start.
    server = await startDashboard({ NODE_PRICE_SAT_PER_DAY: '0' })
  })

  async function createNode(person: Person, name: string) {
    const page = await person.open()
    await go(page, 'Nodes')
    await page.getByRole('button', { name: 'Create node' }).click()
    await dialog(page, 'Create a node').getByLabel('Name').fill(name)
    await dialog(page, 'Create a node').getByRole('button', { name: 'Create', exact: true }).click()
    const box = dialog(page, `Store the credentials of ${name}`)
    await box.waitFor()
    return box
  }

  test('a node’s credentials are masked, cannot be closed by accident, and after Close are in no page, storage or response', async () => {
    const person = await newPerson(server)
    const { page, context } = person
    const answers = recordAnswers(context)
    const box = await createNode(person, 'vault')
    const first = await answers.text()
    // While they are masked, only the original response contains them.
    const [seed = '', password = '', restricted = ''] = Object.values<string>(
      JSON.parse(first.split('\n').find((body) => body.includes('"credentials"')) ?? '').credentials,
    )
    const all = [seed, password, restricted]
    const masked = await traces(page)
    expect(all.map((secret) => masked.includes(secret))).toEqual([false, false, false])
    expect(Object.values(await readSecrets(box, CREDENTIALS))).toEqual(all)

    // Escape, a click outside, the back button and a reload do not close the dialog.
    await page.keyboard.press('Escape')
    await page.mouse.click(5, 400)
    const asked = new Promise<string>((resolve) => {
      page.once('dialog', (question) => {
        resolve(question.type())
        void question.dismiss()
      })
    })
    await page.evaluate('history.back()')
    await page.evaluate('void setTimeout(() => location.reload(), 500)')
    expect(await asked).toBe('beforeunload')
    expect(await box.isVisible()).toBe(true)
    expect(new URL(page.url()).pathname).toBe('/dashboard/nodes')
    expect(await box.getByRole('button', { name: 'Close' }).isDisabled()).toBe(true)

    // A second tab never sees them.
    const second = await context.newPage()
    await second.goto(`${server.url}/dashboard/nodes`)
    await second.getByRole('link', { name: /vault/ }).click()
    await heading(second, /vault/).waitFor()

    await closeSecrets(box)
    await heading(page, /vault/).waitFor()
    const seen = [await traces(page), await traces(second)]
    await page.reload()
    await heading(page, /vault/).waitFor()
    seen.push(await traces(page))
    await page.goBack()
    await heading(page, /Nodes|Overview/)
      .waitFor()
      .catch(() => undefined)
    seen.push(await traces(page), await answers.text())
    for (const place of seen) expect(all.filter((secret) => place.includes(secret))).toEqual([])
  })

  test('after a forced reload, a node’s credentials are gone for good', async () => {
    const person = await newPerson(server)
    const { page, context } = person
    const answers = recordAnswers(context)
    const box = await createNode(person, 'lost')
    await untilText(box, 'This is a sandbox: the node holds only play money')
    const secrets = Object.values(await readSecrets(box, CREDENTIALS))
    await answers.text()
    page.on('dialog', (question) => void question.accept())
    await page.reload()
    await heading(page, 'Nodes').waitFor()
    await page.getByRole('link', { name: /lost/ }).waitFor({ state: 'attached' })
    expect(await dialog(page, /Store the credentials/).count()).toBe(0)
    const kept = (await traces(page)) + (await answers.text())
    expect(secrets.filter((secret) => kept.includes(secret))).toEqual([])
  })

  test('C10, C11: a key has Read ticked and locked, is shown once, and can be disabled, enabled and revoked', async () => {
    const person = await newPerson(server)
    const { page, context } = person
    const answers = recordAnswers(context)
    await person.open('developers')
    const making = await openKeyDialog(page)
    const read = making.getByRole('checkbox', { name: 'Read' })
    expect([await read.isChecked(), await read.isDisabled()]).toEqual([true, true])
    await read.click({ force: true })
    expect(await read.isChecked()).toBe(true)
    await making.getByLabel('Name').fill('only reads')
    await making.getByRole('checkbox', { name: 'Gateway' }).uncheck()
    await making.getByRole('button', { name: 'Create key' }).click()
    const box = dialog(page, 'Store the key only reads')
    const key = (await readSecrets(box, ['API key']))['API key'] ?? ''
    expect(key).toMatch(/^byk_[0-9A-Za-z]{36}$/)
    await answers.text()
    await closeSecrets(box)

    const status = async (path: string, method = 'GET') =>
      (await fetch(`${server.url}/v1${path}`, { method, headers: { authorization: `Bearer ${key}` } })).status
    expect([await status('/nodes'), await status('/nodes', 'POST')]).toEqual([200, 401])
    const row = page.getByRole('list', { name: 'API keys' }).locator('> li').filter({ hasText: 'only reads' })
    await untilText(row, /Read.*created/)

    await page.getByRole('button', { name: 'Disable only reads' }).click()
    await page.getByRole('button', { name: 'Enable only reads' }).waitFor()
    expect(await status('/nodes')).toBe(401)
    await page.getByRole('button', { name: 'Enable only reads' }).click()
    await page.getByRole('button', { name: 'Disable only reads' }).waitFor()
    expect(await status('/nodes')).toBe(200)

    await page.reload()
    await row.waitFor()
    const second = await context.newPage()
    await second.goto(`${server.url}/dashboard/developers`)
    await second.getByText('only reads').waitFor()
    const kept = (await traces(page)) + (await traces(second)) + (await answers.text())
    expect(kept.includes(key)).toBe(false)

    await second.close()
    // Usage times are recorded every ten seconds.
    await expect
      .poll(
        async () => {
          await person.open('developers')
          return textOf(row)
        },
        { interval: 1_000 },
      )
      .toMatch(/last used/)
    await page.getByRole('button', { name: 'Revoke only reads' }).click()
    await dialog(page, 'Revoke only reads?').getByRole('button', { name: 'Revoke key' }).click()
    await page.getByText('You have no API keys yet.').waitFor()
    expect(await status('/nodes')).toBe(401)
  })

  test('C30: a node with limited access can never send; one with full access can', async () => {
    const person = await newPerson(server)
    const { page } = person
    const [limited, full] = await Promise.all([
      person.createReady({ name: 'till', accessMode: 'limited' }),
      person.createReady({ name: 'purse', accessMode: 'full' }),
    ])
    await person.want(200, 'POST', `/sandbox/nodes/${full.node.id}/fund`, { json: { amountSat: 50_000 } })
    await person.want(200, 'POST', `/sandbox/nodes/${limited.node.id}/fund`, { json: { amountSat: 50_000 } })

    await person.open(`nodes/${limited.node.id}?tab=send`)
    await page.getByText('This dashboard cannot send from this node').waitFor()
    expect(await page.getByRole('button', { name: /Send/ }).count()).toBe(0)
    // The request that the page of a node with full access would send is refused, too.
    const { invoice } = await person.want(201, 'POST', `/nodes/${full.node.id}/invoices`, {
      json: { amountSat: 5, description: 'x' },
    })
    const refused = await person.send('POST', `/nodes/${limited.node.id}/pay`, { json: { invoice } })
    expect(refused.status).toBeGreaterThanOrEqual(400)

    // An invoice of the limited node, with a QR code, becomes paid without a reload.
    await page.getByRole('tab', { name: 'Invoice' }).click()
    expect(await page.getByRole('tab', { name: 'Send' }).count()).toBe(0)
    await page.getByLabel('Amount in sat').fill('1500')
    await page.getByLabel('Description').fill('Two coffees')
    await page.getByRole('button', { name: 'Create invoice' }).click()
    await page.getByRole('img', { name: 'QR code of the invoice' }).waitFor()
    const asked = (await page.getByRole('region', { name: 'Invoice', exact: true }).locator('code').textContent()) ?? ''
    expect(asked).toMatch(/^lnbcrt/)
    expect(await page.getByRole('link', { name: 'Open in wallet' }).getAttribute('href')).toBe(`lightning:${asked}`)

    // Paid by the full-access node from a second tab.
    const second = await person.context.newPage()
    await second.goto(`${server.url}/dashboard/nodes/${full.node.id}?tab=send`)
    await second.getByLabel('Invoice').fill(asked)
    await second.getByRole('button', { name: 'Send…' }).click()
    const sure = dialog(second, 'Send this payment?')
    await untilText(sure, 'You send 1 500 sat from purse')
    await sure.getByRole('button', { name: 'Send now' }).click()
    await untilText(second.getByTestId('sent'), 'Sent 1 500 sat')
    expect(await second.getByLabel('Invoice').inputValue()).toBe('')
    expect(await second.getByRole('button', { name: 'Send…' }).isDisabled()).toBe(true)
    // The second time, nothing is sent, and the page does not claim that it was.
    await second.getByLabel('Invoice').fill(asked)
    await second.getByRole('button', { name: 'Send…' }).click()
    await sure.getByRole('button', { name: 'Send now' }).click()
    await second.getByText('This invoice was already paid').waitFor()
    expect(await second.getByTestId('sent').count()).toBe(0)
    await page.bringToFront()
    await untilText(page.getByTestId('paid'), 'Paid 1 500 sat')
    expect(await page.getByRole('img', { name: 'QR code of the invoice' }).count()).toBe(0)
    await page.getByRole('tab', { name: 'Payments' }).click()
    await untilText(page.getByRole('row', { name: /Two coffees/ }), /Received 1 500 sat/)
  })
})
