import { beforeAll, expect, test } from 'vitest'
import type { Server } from '../../server/test/support/server.ts'
import { answers, openReceiver } from '../../testing/receiver.ts'
import { heading, inBrowser, newPerson, startDashboard, textOf, untilText } from './harness.ts'
import { payChallenge, payCharge } from './pages.ts'

inBrowser('payments in the dashboard', () => {
  let server: Server
  beforeAll(async () => {
    server = await startDashboard({ NODE_PRICE_SAT_PER_DAY: '0' })
  })

  test('dashboard: a payment lists each attempt at a webhook, and the payments of a node are added up', async () => {
    const person = await newPerson(server)
    const { page } = person
    const { node } = await person.createReady()
    const receiver = await openReceiver(answers(500))
    await person.want(201, 'POST', '/webhooks', { json: { url: receiver.url, types: ['payment.settled'] } })
    const id = await payCharge(person, node.id, 20)
    await person.open(`gateway/payments/${id}`)
    const events = page.getByRole('region', { name: 'Events and webhooks' })
    await untilText(events, /\d attempts? .*(just now|ago) Status 500 after [\d ]+ ms status 500/)

    const json = { nodeId: node.id, amountSat: 3, description: 'Unpaid', protocol: 'mpp' }
    await person.want(201, 'POST', '/payments', { json })
    await person.open(`nodes/${node.id}?tab=payments`)
    const status = page.locator('.payment-filter').getByRole('status')
    await expect.poll(() => textOf(status)).toBe('The newest 2 · received 20 sat')
    await page.getByText('Unpaid invoices', { exact: true }).click()
    await expect.poll(() => textOf(status)).toBe('1 of the newest 2')
  })

  test('dashboard: customers who paid this week and got nothing are found with the keyboard, and the filters stay after Back', async () => {
    const person = await newPerson(server)
    const { page } = person
    const { node } = await person.createReady({ name: 'Shop' })
    await payCharge(person, node.id, 20, 'Delivered tea', 'redeem')
    const json = { nodeId: node.id, amountSat: 3, description: 'Cold tea', protocol: 'mpp' }
    await payChallenge(person, (await person.want(201, 'POST', '/payments', { json })).challenge)
    await person.want(201, 'POST', '/payments', { json: { ...json, description: 'Unpaid tea' } })

    await person.open('gateway')
    const filters = page.getByRole('search', { name: 'Filter payments' })
    const totals = page.getByRole('region', { name: 'Totals' })
    await untilText(totals, /Payments 3 Paid by customers 2 Received 23 sat Paid, not delivered 1/)
    await page.getByLabel('Period').selectOption('This week')
    await totals.getByRole('link', { name: /show them/ }).click()
    await untilText(totals, /Payments 1 .* Received 3 sat Paid, not delivered 1 Created since/)
    const rows = page.getByRole('table', { name: 'Gateway payments' }).getByRole('link')
    await expect.poll(() => rows.allInnerTexts()).toEqual(['Cold tea'])
    expect(page.url()).toMatch(/period=week&state=undelivered|state=undelivered&period=week/)

    await page.getByRole('heading', { level: 1 }).focus()
    await page.keyboard.press('j')
    expect(await page.evaluate('document.activeElement.textContent')).toBe('Cold tea')
    await page.keyboard.press('Enter')
    await heading(page, /^3 sat · Cold tea Settled$/).waitFor()
    await untilText(page.getByRole('region', { name: 'Details' }), /Created by .*@example\.com, in this dashboard/)
    await untilText(page.getByRole('region', { name: 'Events and webhooks' }), 'payment.settled')
    const opened = page.url()
    await page.getByRole('link', { name: 'Back to the filtered payments' }).click()
    await expect.poll(() => page.url()).toMatch(/\/gateway\?(period=week&state=undelivered|state=undelivered&period=week)$/)
    await expect.poll(() => rows.allInnerTexts()).toEqual(['Cold tea'])
    await page.goBack()
    await expect.poll(() => page.url()).toBe(opened)
    await page.goBack()
    await expect.poll(() => rows.allInnerTexts()).toEqual(['Cold tea'])

    await page.keyboard.press('/')
    await page.keyboard.type('no such thing')
    await page.getByText('No payments match these filters.').waitFor()
    await page.getByRole('button', { name: 'Clear filters' }).last().click()
    await expect.poll(() => rows.allInnerTexts()).toEqual(['Unpaid tea', 'Cold tea', 'Delivered tea'])
    await filters.getByRole('button', { name: 'More filters' }).click()
    const least = page.getByLabel('At least (sat)')
    const most = page.getByLabel('At most (sat)')
    const wrong = filters.getByText('Enter a whole number of sat')
    for (const amount of ['-5', '1.5']) {
      await least.fill(amount)
      await wrong.waitFor()
    }
    await least.fill('10')
    await expect.poll(() => rows.allInnerTexts()).toEqual(['Delivered tea'])
    expect(await wrong.count()).toBe(0)
    await most.fill('9')
    await filters.getByText('This is less than “At least”, so no payment matches.').waitFor()
    await page.getByLabel('Period').selectOption('From … to …')
    await page.getByLabel('From').fill('2026-03-02')
    await page.getByLabel('To', { exact: true }).fill('2026-03-01')
    await filters.getByText('The dates are reversed: “To” is before “From”.').waitFor()
    await least.fill('1.5')
    await wrong.waitFor()
    await filters.getByRole('button', { name: 'Clear filters' }).click()
    await expect.poll(() => rows.count()).toBe(3)
    await expect.poll(() => least.inputValue()).toBe('')
    expect(await wrong.count()).toBe(0)
    const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('link', { name: 'Export CSV' }).click()])
    expect(download.suggestedFilename()).toBe('payments.csv')
  })

  test('dashboard: a search for the name of a node leads to its payments, whether or not it finds any', async () => {
    const person = await newPerson(server)
    const { page } = person
    const { node } = await person.createReady({ name: 'Shop 17' })
    const { node: other } = await person.createReady({ name: 'Podcast' })
    for (const [nodeId, description] of [
      [node.id, 'Green tea'],
      [other.id, 'Podcast 9'],
    ])
      await person.want(201, 'POST', '/payments', { json: { nodeId, amountSat: 5, description, protocol: 'l402' } })
    await person.open('gateway')
    const rows = page.getByRole('table', { name: 'Gateway payments' }).getByRole('link')
    const filters = page.getByRole('search', { name: 'Filter payments' })
    const search = page.getByLabel('Search', { exact: true })

    await search.fill('shop 17')
    await page.getByText('No payments match these filters.').waitFor()
    await untilText(filters, /Shop 17 is a node\. Show its payments$/)
    await filters.getByRole('button', { name: 'Show its payments: Shop 17' }).click()
    await expect.poll(() => rows.allInnerTexts()).toEqual(['Green tea'])
    expect([await search.inputValue(), await page.getByLabel('Node', { exact: true }).inputValue()]).toEqual(['', node.id])

    // The list is already filtered by this node.
    await search.fill('Shop 17')
    await page.getByText('No payments match these filters.').waitFor()
    expect(await filters.getByText('is a node').count()).toBe(0)
    await filters.getByRole('button', { name: 'Clear filters' }).click()
    await search.fill('podcast')
    await expect.poll(() => rows.allInnerTexts()).toEqual(['Podcast 9'])
    await untilText(filters, /Podcast is a node\. Show its payments$/)

    // A payment that was opened directly leads to all payments. Its key is gone, so it also leads to who revoked the key.
    const { id: keyId, key } = await person.want(201, 'POST', '/keys', { json: { name: 'Till', scopes: ['gateway:write'] } })
    const json = { nodeId: node.id, amountSat: 5, description: 'By key', protocol: 'l402' }
    const { id } = (await server.send('POST', '/v1/gateway/payments', { token: key, json })).json()
    await person.open(`gateway/payments/${id}`)
    const creator = page.getByRole('region', { name: 'Details' }).locator('dd').last()
    await untilText(creator, /^API key Till$/)
    await person.want(204, 'DELETE', `/keys/${keyId}`)
    await person.open(`gateway/payments/${id}`)
    await untilText(creator, 'API key Till, revoked. Who revoked it?')
    expect(await creator.getByRole('link').last().getAttribute('href')).toBe(`/dashboard/activity?keyId=${keyId}`)
    expect(await page.getByRole('link', { name: 'All payments' }).getAttribute('href')).toBe('/dashboard/gateway')
  })
})
