import { beforeAll, expect, test } from 'vitest'
import { newId } from '../../server/src/platform/ids.ts'
import type { Server } from '../../server/test/support/server.ts'
import { enter, heading, inBrowser, newPerson, type Person, startDashboard, textOf, untilText } from './harness.ts'
import { payCharge } from './pages.ts'

inBrowser('the overview and nodes', () => {
  let server: Server
  let person: Person
  let nodeId: string
  beforeAll(async () => {
    server = await startDashboard({ NODE_PRICE_SAT_PER_DAY: '0' })
    person = await newPerson(server, { timezoneId: 'America/Los_Angeles' })
    const [shop] = await Promise.all([
      person.createReady({ name: 'shop', accessMode: 'full' }),
      person.createReady({ name: 'other' }),
    ])
    nodeId = shop.node.id
    await person.want(200, 'POST', `/sandbox/nodes/${nodeId}/fund`, { json: { amountSat: 500_000 } })
    await payCharge(person, nodeId, 1_500, 'One report')
    // Half an hour before midnight in Los Angeles, two days ago: another day in UTC.
    const json = { nodeId, amountSat: 700, description: 'Late', protocol: 'l402' }
    const { id } = await person.want(201, 'POST', '/payments', { json })
    await server.sql()`
      UPDATE gateway_payments SET ask_at = NULL, settled_at =
        date_trunc('day', now() AT TIME ZONE 'America/Los_Angeles') AT TIME ZONE 'America/Los_Angeles' - interval '24 hours 30 minutes'
      WHERE id = ${id}`
  })

  test('days are local, each bar can be read with the keyboard, the period is kept, and what needs attention has a link', async () => {
    const { page } = person
    await person.open()
    await untilText(page.getByTestId('received-total'), '1 500 sat')
    await page.getByText('7 days', { exact: true }).click()
    await untilText(page.getByTestId('received-total'), '2 200 sat')
    const chart = page.getByRole('slider', { name: 'Received per day' })
    await chart.focus()
    await page.keyboard.press('End')
    await untilText(page.getByTestId('chart-tip'), /^1 500 sat/)
    for (const _ of [1, 2]) await page.keyboard.press('ArrowLeft')
    await untilText(page.getByTestId('chart-tip'), /^700 sat/)
    const twoDaysAgo = new Intl.DateTimeFormat('en-GB', { weekday: 'short', timeZone: 'America/Los_Angeles' })
    expect(await chart.getAttribute('aria-valuetext')).toContain(twoDaysAgo.format(Date.now() - 2 * 86_400_000))
    await page.keyboard.press('Escape')
    expect(await page.getByTestId('chart-tip').count()).toBe(0)
    await chart.hover()
    await page.getByTestId('chart-tip').waitFor()
    await page.reload()
    await untilText(page.getByTestId('received-total'), '2 200 sat')
    // Both were received in this month, or one of them in the last, on the evening of its last day.
    await page.getByLabel('Month').selectOption({ index: 1 })
    await untilText(page.getByTestId('received-total'), /^(2 200|1 500) sat/)
    await page.getByText('7 days', { exact: true }).click()
    await untilText(page.getByTestId('received-total'), '2 200 sat')
    await untilText(
      page.getByRole('region', { name: 'Recent payments' }),
      /1 500 sat One report Paid .* 700 sat Late Paid, got nothing/,
    )
    await untilText(page.getByTestId('attention-unfulfilled'), 'For 1 payment of the last 7 days')
    await page.getByTestId('attention-unfulfilled').getByRole('link').click()
    await page.getByRole('row', { name: /Late/ }).waitFor()
    // As many as the sentence says: the payment that was validated is not among them.
    expect(await page.getByRole('table').locator('tbody tr').count()).toBe(1)
    await untilText(page.getByRole('region', { name: 'Totals' }), 'Paid, got nothing 1')
  })

  test('what a node earned in a month is on its page, with the payments behind it, also while it is stopped', async () => {
    const earner = await newPerson(server, { timezoneId: 'America/Los_Angeles' })
    const { node } = await earner.createReady({ name: 'earner' })
    // On the first of a month, it may still be the previous month in Los Angeles.
    const now = new Date(new Date().toLocaleString('en-US', { timeZone: 'America/Los_Angeles' }))
    const months = [1, 2].map((ago) => new Date(now.getFullYear(), now.getMonth() - ago, 15, 20))
    for (const [place, paidAt] of months.entries()) {
      const json = { nodeId: node.id, amountSat: 300 * (place + 1), description: `Report ${place}`, protocol: 'l402' }
      const { id } = await earner.want(201, 'POST', '/payments', { json })
      // An id begins with the time of its creation.
      const createdThen = newId('pay', paidAt.getTime())
      await server.sql()`
        UPDATE gateway_payments SET id = ${createdThen}, ask_at = NULL, created_at = ${paidAt}, settled_at = ${paidAt} WHERE id = ${id}`
    }
    // The node was created just before the two months, so earlier ones cannot be chosen, and the later of the two is compared
    // with a whole month.
    const createdAt = new Date(now.getFullYear(), now.getMonth() - 2, 0)
    await server.sql()`UPDATE nodes SET created_at = ${createdAt} WHERE id = ${node.id}`
    await earner.want(200, 'POST', `/nodes/${node.id}/stop`, { json: {} })
    const { page } = earner
    await earner.open(`nodes/${node.id}?tab=payments`)
    await page.getByRole('link', { name: 'by day and month' }).click()
    expect(await page.getByLabel('Month').locator('option').count()).toBe(1 + 4)
    await page.getByLabel('Month').selectOption({ index: 2 })
    await untilText(page.getByTestId('received-total'), '300 sat')
    await untilText(page.getByTestId('received-compared'), '50 % less than in the previous period (600 sat)')
    const name = new Intl.DateTimeFormat('en-GB', { month: 'long', year: 'numeric' }).format(months[0])
    await page.getByRole('link', { name: `Gateway payments of ${name}` }).click()
    await page.getByRole('row', { name: /Report 0/ }).waitFor()
    expect(await page.getByRole('table').locator('tbody tr').count()).toBe(1)
    expect(await page.getByLabel('Period').inputValue()).toBe('last-month')
    expect(await page.getByLabel('From').count()).toBe(0)
  })

  test('nodes are found; a node shows its log and addresses; a pasted invoice is explained before it is paid', async () => {
    const { page, open } = await enter(person)
    await open('nodes?show=ready')
    await page.getByLabel('Search nodes').fill('SHO')
    await untilText(page.getByRole('table', { name: 'Nodes' }), /shop .* Ready/)
    await page.getByText('1 of 2 nodes').waitFor()
    await page.getByLabel('Search nodes').fill('')
    const table = page.getByRole('table', { name: 'Nodes' })
    const names = () => table.getByRole('row').getByRole('link').allInnerTexts()
    await expect.poll(async () => (await names()).length).toBe(2)
    const header = table.getByRole('columnheader', { name: 'Name' })
    await header.getByRole('button').focus()
    for (const [direction, order] of [
      ['ascending', ['other', 'shop']],
      ['descending', ['shop', 'other']],
      ['ascending', ['other', 'shop']],
    ]) {
      await page.keyboard.press('Enter')
      await expect.poll(() => header.getAttribute('aria-sort')).toBe(direction)
      expect(await names()).toEqual(order)
    }
    await page.reload()
    await expect.poll(names).toEqual(['other', 'shop'])
    // Created is the order without a choice, the newest is first after a click.
    await table.getByRole('button', { name: 'Created' }).click()
    await expect.poll(() => table.getByRole('columnheader', { name: 'Created' }).getAttribute('aria-sort')).toBe('descending')
    expect(await header.getAttribute('aria-sort')).toBeNull()
    await page.getByRole('link', { name: 'shop' }).click()
    await heading(page, 'shop Ready').waitFor()
    await untilText(page.getByTestId('inbound'), /^The node can receive about [\d ]+ sat more/)
    await untilText(page.getByRole('region', { name: 'Receive without an invoice' }), /\w@[\w.]+ .*lno1/)
    await page.getByRole('tab', { name: 'Log' }).click()
    await untilText(page.getByRole('region', { name: 'Lines of the log' }), 'connected to lightning peer')
    const { nodes } = await person.want(200, 'GET', '/nodes')
    const other = nodes.find(({ name }: { name: string }) => name === 'other')
    const json = { amountSat: 2_100, description: 'Two coffees' }
    const { invoice } = await person.want(201, 'POST', `/nodes/${other.id}/invoices`, { json })
    await page.getByRole('tab', { name: 'Send' }).click()
    await page.getByLabel('Invoice', { exact: true }).fill(`lightning:${invoice.toUpperCase()}`)
    await untilText(
      page.getByRole('region', { name: 'The invoice' }),
      /Amount 2 100 sat Description Two coffees Expires in 2\d hours/,
    )
    await page.getByRole('button', { name: 'Send…' }).click()
    await page.getByRole('button', { name: 'Send now' }).click()
    await page.getByTestId('sent').waitFor()
    expect(await page.getByLabel('Invoice', { exact: true }).inputValue()).toBe('')
    expect(await textOf(page.getByTestId('can-send'))).toContain('The node has')
    await page.getByRole('tab', { name: 'Payments' }).click()
    await page.getByText('Received', { exact: true }).first().click()
    await page.getByRole('link', { name: 'One report' }).click()
    await page.waitForURL(/gateway\/payments\//)
  })
})
