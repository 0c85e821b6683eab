import { beforeAll, expect, test } from 'vitest'
import { fault } from '../../server/test/support/nodes.ts'
import type { Server } from '../../server/test/support/server.ts'
import { dialog, enter, heading, inBrowser, newPerson, type Person, startDashboard, textOf, untilText } from './harness.ts'
import { payChallenge, payCharge, untilLoaded } from './pages.ts'

/** Statements of the dashboard that are easy to get wrong. */
inBrowser('what the dashboard says', () => {
  let server: Server
  beforeAll(async () => {
    server = await startDashboard()
  })

  /** Moves the payment to this local time in the zone. Returns the chart's labels for its hour and day. */
  async function receivedAt(person: Person, paymentId: string, zone: string, daysAgo: number, time: string): Promise<Named> {
    const sql = server.sql()
    const [row] = await sql<Named[]>`
      WITH wall AS (
        SELECT date_trunc('day', now() AT TIME ZONE ${zone}) - ${daysAgo} * interval '1 day' + ${time}::interval AS at
      ), moved AS (
        UPDATE gateway_payments SET settled_at = wall.at AT TIME ZONE ${zone} FROM wall
        WHERE id = ${paymentId} AND account_id = ${person.accountId}
      )
      SELECT to_char(at, 'Dy FMDD Mon') AS day, to_char(date_trunc('hour', at), 'Dy HH24:MI') AS hour FROM wall`
    await sql.end()
    if (!row) throw new Error('no such payment')
    return row
  }
  type Named = { day: string; hour: string }

  test('dashboard: a payment is shown under the local day and hour it arrived, in Los Angeles, Kathmandu and UTC', async () => {
    const person = await newPerson(server)
    const { node } = await person.createReady()
    const [late, early] = [await payCharge(person, node.id, 100), await payCharge(person, node.id, 2_000)]
    for (const timezoneId of ['America/Los_Angeles', 'Asia/Kathmandu', 'UTC']) {
      // Twenty minutes apart, around midnight.
      const before = await receivedAt(person, late, timezoneId, 2, '23:50')
      const after = await receivedAt(person, early, timezoneId, 1, '00:10')
      const { page, open } = await enter(person, { timezoneId })
      await open()
      await page.getByText('7 days', { exact: true }).click()
      const days = page.getByRole('table', { name: 'Satoshis received per day' })
      await days.waitFor({ state: 'attached' })
      const filled = async (): Promise<string[]> => {
        const rows = await days.getByRole('row').allInnerTexts()
        return rows.map((row) => row.replace(/\s+/g, ' ')).filter((row) => / [1-9]\d*$/.test(row))
      }
      await expect.poll(filled, { message: timezoneId }).toEqual([`${before.day} 100`, `${after.day} 2000`])
      await untilText(page.getByTestId('received-total'), '2 100 sat')

      const now = await receivedAt(person, early, timezoneId, 0, '00:00')
      await open()
      // The choice of “7 days” is kept.
      await days.waitFor({ state: 'attached' })
      await page.getByText('24 hours', { exact: true }).click()
      const hours = page.getByRole('table', { name: 'Satoshis received per hour' })
      await hours.waitFor({ state: 'attached' })
      await untilText(hours, `${now.hour} 2000`)
    }
  })

  test('dashboard: it says what counts as received', async () => {
    const person = await newPerson(server)
    const { page } = person
    await person.open()
    await untilText(
      page.getByRole('region', { name: 'Received', exact: true }),
      /Gateway payments count at once, other payments of a node usually within ten minutes/,
    )
    // Not “0 of 0”, which would say nothing.
    expect(await textOf(page.getByTestId('overview-nodes'))).toBe('None yet')
  })

  test('dashboard: a hanging node is not shown as ready, not counted as up, and its channels are unknown', async () => {
    const person = await newPerson(server)
    const created = await person.createReady({ name: 'stuck' })
    const [one, list, overview] = await Promise.all([enter(person), enter(person), enter(person)])
    await Promise.all([one.open(`nodes/${created.node.id}`), list.open('nodes'), overview.open()])
    await heading(one.page, 'stuck Ready').waitFor()
    await untilText(overview.page.getByTestId('overview-nodes'), '1 of 1 up')
    await fault(server, created, 'hang')
    await Promise.all([
      heading(one.page, 'stuck Not responding')
        .waitFor()
        .then(() => untilText(one.page.getByRole('region', { name: 'Money', exact: true }), 'Channels unknown')),
      untilText(list.page.getByRole('row', { name: /stuck/ }), 'Not responding'),
      untilText(overview.page.getByTestId('overview-nodes'), '0 of 1 up').then(() =>
        untilText(overview.page.getByRole('region', { name: 'Nodes' }), '1 is not responding.'),
      ),
    ])
    await fault(server, created, 'none')
    await heading(one.page, 'stuck Ready').waitFor()
    await untilText(list.page.getByRole('row', { name: /stuck/ }), 'Ready')
    await untilText(overview.page.getByTestId('overview-nodes'), '1 of 1 up')
  })

  test('dashboard: a stopped node’s software is not shown as running', async () => {
    const person = await newPerson(server)
    const { page } = person
    const { node } = await person.createReady({ name: 'idle' })
    await person.want(200, 'POST', `/nodes/${node.id}/stop`, { json: {} })
    await person.open(`nodes/${node.id}?tab=settings`)
    const software = page.getByRole('region', { name: 'Software' })
    await untilText(software, /Version \d+\.\d+\.\d+/)
    expect(await textOf(software)).not.toMatch(/\bruns?\b/)
  })

  test('dashboard: an unpaid payment does not look busy, and an open page shows that it has expired', async () => {
    const person = await newPerson(server, { reducedMotion: 'no-preference' })
    const { page } = person
    const { node } = await person.createReady()
    const json = { nodeId: node.id, amountSat: 5, description: 'Tea', protocol: 'l402' }
    const { id } = await person.want(201, 'POST', '/payments', { json })
    await person.open(`gateway/payments/${id}`)
    await heading(page, '5 sat · Tea Unpaid').waitFor()
    const icon = page.locator('.status svg')
    expect(await icon.evaluate((svg: any) => svg.ownerDocument.defaultView.getComputedStyle(svg).animationName)).toBe('none')
    await page.getByText('not yet: the node has not received the money').waitFor()

    const sql = server.sql()
    await sql`UPDATE gateway_payments SET expires_at = now() + interval '10 seconds' WHERE id = ${id}`
    await sql.end()
    // These pages get no event about it. Each fetches its data again when the time comes. The mark would not survive a
    // reload of the page.
    const list = await enter(person)
    await Promise.all([person.open(`gateway/payments/${id}`), list.open('gateway?state=unpaid')])
    await page.evaluate('window.mark = 1')
    await Promise.all([
      heading(page, '5 sat · Tea Expired').waitFor(),
      list.page.getByText('No payments match these filters.').waitFor(),
    ])
    expect(await page.evaluate('window.mark')).toBe(1)
    const details = await textOf(page.getByRole('region', { name: 'Timeline' }))
    expect(details).toContain('no: it has expired, and the node has not reported a payment')
    expect(details).not.toContain('not yet')
  })

  test('dashboard: D2: the filter Unpaid shows no paid payments, and paid but undelivered payments can be found', async () => {
    const person = await newPerson(server)
    const { page } = person
    const { node } = await person.createReady()
    const charge = (description: string): Promise<{ id: string; challenge: string }> =>
      person.want(201, 'POST', '/payments', { json: { nodeId: node.id, amountSat: 5, description, protocol: 'l402' } })
    const open = await charge('open')
    const away = await charge('paid and left')
    await payChallenge(person, away.challenge)
    await payCharge(person, node.id, 5, 'validated only')
    const [sold, slow] = [await charge('sold'), await charge('being made')]
    const redeem = async ({ id, challenge }: typeof sold, more: object = {}) => {
      const credential = await payChallenge(person, challenge)
      await person.want(200, 'POST', `/payments/${id}/redeem`, { json: { credential, requestId: 'one', ...more } })
    }
    await redeem(sold)
    await redeem(slow, { singleUse: true, holdSeconds: 600 })
    const late = await charge('too late')
    const sql = server.sql()
    await sql`UPDATE gateway_payments SET expires_at = now() - interval '1 minute' WHERE id = ${late.id}`
    await sql`UPDATE gateway_payments SET expires_at = now() + interval '1 hour' WHERE id = ${open.id}`
    const isSettled = async (id: string) =>
      (await sql`SELECT 1 FROM gateway_payments WHERE id = ${id} AND settled_at IS NOT NULL`).length > 0
    await expect.poll(() => isSettled(away.id)).toBe(true)
    await sql.end()

    await person.open('gateway')
    const rows = async (): Promise<string[]> => {
      await page.getByRole('table', { name: 'Gateway payments' }).waitFor()
      const texts = await page.getByRole('row').allInnerTexts()
      return texts.slice(1).map((text) => text.replace(/\s+/g, ' ').replace(/ 5 sat.*/, ''))
    }
    const status = page.getByLabel('Status')
    const wanted: [string, string[]][] = [
      ['Unpaid', ['open Unpaid']],
      ['Paid, not delivered', ['validated only Paid', 'paid and left Settled']],
      ['Delivered', ['sold Delivered']],
      ['Delivering', ['being made Delivering']],
      ['Expired', ['too late Expired']],
      [
        'Any',
        [
          'too late Expired',
          'being made Delivering',
          'sold Delivered',
          'validated only Paid',
          'paid and left Settled',
          'open Unpaid',
        ],
      ],
    ]
    for (const [option, list] of wanted) {
      await status.selectOption(option)
      await expect.poll(rows).toEqual(list)
    }
    // The whole row leads to the payment.
    await page.getByRole('row', { name: /sold/ }).click()
    await heading(page, '5 sat · sold Delivered').waitFor()

    // A released payment is not shown as never redeemed, and an open page shows that a hold has ended.
    const details = page.getByRole('region', { name: 'Timeline' })
    const owner = await person.owner()
    await owner.want(200, 'POST', `/gateway/payments/${sold.id}/release`, { json: { requestId: 'one' } })
    await untilText(details, 'it was redeemed, but the delivery failed and was released')
    const store = server.sql()
    await store`UPDATE paid_payments SET held_until = now() + interval '10 seconds' WHERE id = ${slow.id}`
    await store.end()
    await person.open(`gateway/payments/${slow.id}`)
    await heading(page, '5 sat · being made Delivering').waitFor()
    await heading(page, '5 sat · being made Paid').waitFor()
    await untilText(details, 'it was redeemed, but the claim lapsed')
  })

  test('dashboard: a customer who paid, came back and was refused is not shown as absent', async () => {
    const person = await newPerson(server)
    const { node } = await person.createReady()
    const terms = { nodeId: node.id, amountSat: 5, description: 'dearer now', protocol: 'l402' }
    const { id, challenge } = await person.want(201, 'POST', '/payments', { json: terms })
    const credential = await payChallenge(person, challenge)
    const redeem = (status: number, minAmountSat: number) =>
      person.want(status, 'POST', `/payments/${id}/redeem`, { json: { credential, requestId: 'one', expect: { minAmountSat } } })
    expect(await redeem(409, 6)).toMatchObject({ error: { code: 'terms_mismatch', settled: true } })
    await person.open(`gateway/payments/${id}`)
    await untilText(
      person.page.getByText('The node received the money, but'),
      /or your server refused the credential.*It stays valid/,
    )
    await redeem(200, 5)
    await person.page.getByText('The node received the money, but').waitFor({ state: 'detached' })
  })

  test('dashboard: the ledger on the screen adds up to the balance above it', async () => {
    const person = await newPerson(server)
    const { page } = person
    const { node } = await person.createReady({ name: 'meter' })
    // Some usage has been posted to the ledger, and some has not.
    const sql = server.sql()
    await sql`
      INSERT INTO credit_entries (account_id, amount_msat, kind, reason) VALUES (${person.accountId}, -625, 'usage', 'A node for 9 minutes')`
    await sql`UPDATE usage_intervals SET started_at = started_at - interval '50 minutes' WHERE node_id = ${node.id} AND ended_at IS NULL`
    await sql.end()
    await person.open('credit')
    await untilText(page.getByTestId('unposted'), /Used, not charged yet meter: 5\d minutes since .* −3\.\d+ sat/)
    const msat = (text: string): number => {
      const [, sign, whole = '', fraction = ''] = /([+−]?)([\d ]+)(?:\.(\d+))? sat/.exec(text.replace(/\s/g, ' ')) ?? []
      const amount = Number(whole.replaceAll(' ', '')) * 1000 + Number(fraction.padEnd(3, '0'))
      return sign === '−' ? -amount : amount
    }
    // Read both in one call, because a minute may end between two calls.
    const { balance, amounts } = await page.evaluate<{ balance: string; amounts: string[] }>(`({
      balance: document.querySelector('[data-testid=credit-balance]').textContent,
      amounts: [...document.querySelectorAll('[aria-label=Ledger] tbody tr')].map((row) => row.cells[1].textContent),
    })`)
    expect(amounts).toHaveLength(3)
    expect(amounts.map(msat).reduce((sum, amount) => sum + amount, 0)).toBe(msat(balance))
  })

  test('dashboard: deducted credit is not shown as added', async () => {
    const person = await newPerson(server)
    const { page } = person
    await server.operator('POST', `/accounts/${person.accountId}/credit`, { json: { amountSat: -33, reason: 'test' } })
    await server.operator('POST', `/accounts/${person.accountId}/credit`, { json: { amountSat: 20, reason: 'test' } })
    await person.open('activity')
    const log = page.getByRole('region', { name: 'Activity' })
    await untilText(log, 'Credit was deducted: 33 sat (test) by the operator')
    await untilText(log, 'Credit was added: 20 sat (test) by the operator')
  })

  test('dashboard: who revoked a key is found by choosing the key, although it is gone', async () => {
    const person = await newPerson(server)
    const { page } = person
    const key = await person.want(201, 'POST', '/keys', { json: { name: 'Old till', scopes: [] } })
    await person.want(204, 'DELETE', `/keys/${key.id}`, { json: {} })
    await person.open('activity')
    const log = page.getByRole('region', { name: 'Activity' })
    await untilText(log, /Signed up/)
    await page.getByLabel('API key').selectOption(key.id)
    await log.getByText('Signed up').waitFor({ state: 'detached' })
    const story = /^Today API key Old till was revoked by you .* API key Old till was created by you/
    await untilText(log, story)
    // Searching for the key leads to the same log.
    await person.open('credit')
    await heading(page, 'Credit').waitFor()
    await page.keyboard.press('Control+k')
    const palette = page.getByRole('dialog')
    await palette.getByRole('combobox').fill('old till')
    await palette.getByRole('option', { name: /Old till.*revoked/ }).click()
    await untilText(log, story)
  })

  test('dashboard: deleting a node with money warns before the name can be typed, running and stopped', async () => {
    const person = await newPerson(server)
    const { page } = person
    const { node } = await person.createReady({ name: 'rich' })
    await person.want(200, 'POST', `/sandbox/nodes/${node.id}/fund`, { json: { amountSat: 50_000 } })
    const deleting = dialog(page, 'Delete rich?')
    const accept = deleting.getByRole('checkbox', { name: 'Delete the node even though it holds funds' })
    const name = deleting.getByLabel('Type rich to confirm')
    const confirm = deleting.getByRole('button', { name: 'Delete with its funds' })
    for (const state of ['ready', 'stopped']) {
      if (state === 'stopped') await person.want(200, 'POST', `/nodes/${node.id}/stop`, { json: {} })
      await person.open(`nodes/${node.id}?tab=settings`)
      await untilLoaded(page)
      await page.getByRole('button', { name: 'Delete node…' }).click()
      await accept.waitFor()
      expect([state, await name.isDisabled(), await confirm.isDisabled()]).toEqual([state, true, true])
    }
    await untilText(deleting, 'The node held money when they were last online.')
    await accept.check()
    await name.fill('rich')
    await accept.uncheck()
    expect([await name.isDisabled(), await confirm.isDisabled()]).toEqual([true, true])
    await accept.check()
    await confirm.click()
    await page.getByText('You have no nodes yet.').waitFor()
  })

  test('dashboard: while the balance loads, deleting a node neither calls it unknown nor goes on', async () => {
    const person = await newPerson(server)
    const { page } = person
    const { node } = await person.createReady({ name: 'slow' })
    let answer = (): void => undefined
    const answered = new Promise<void>((resolve) => {
      answer = resolve
    })
    await page.route('**/live', async (route) => {
      await answered
      await route.continue()
    })
    await person.open(`nodes/${node.id}?tab=settings`)
    await page.getByRole('button', { name: 'Delete node…' }).click()
    const deleting = dialog(page, 'Delete slow?')
    await untilText(deleting, 'Balance: loading…')
    expect(await deleting.getByLabel('Type slow to confirm').isDisabled()).toBe(true)
    answer()
    await untilText(deleting, 'Balance: 0 sat')
    expect(await deleting.getByLabel('Type slow to confirm').isDisabled()).toBe(false)
  })

  test('dashboard: right-to-left text is aligned to its start', async () => {
    const person = await newPerson(server)
    const { page } = person
    const description = 'تقرير الطقس لمدينة القاهرة لكل يوم من أيام الأسبوع القادم'
    const { node } = await person.createReady({ name: 'متجر 18' })
    await person.want(201, 'POST', '/payments', { json: { nodeId: node.id, amountSat: 5, description, protocol: 'l402' } })
    await person.open('gateway')
    const cell = page.getByRole('cell', { name: description })
    await cell.waitFor()
    expect(await cell.evaluate((td: any) => td.ownerDocument.defaultView.getComputedStyle(td).direction)).toBe('rtl')
    await person.open('nodes')
    const name = page.getByText('متجر 18', { exact: true })
    await name.waitFor()
    expect(await name.evaluate((element: any) => element.ownerDocument.defaultView.getComputedStyle(element).direction)).toBe(
      'rtl',
    )
  })
})
