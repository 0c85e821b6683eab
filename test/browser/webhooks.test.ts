import { beforeAll, expect, test } from 'vitest'
import type { Server } from '../../server/test/support/server.ts'
import { answers, ok, openReceiver, verified } from '../../testing/receiver.ts'
import {
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

inBrowser('webhooks in the dashboard', () => {
  let server: Server
  beforeAll(async () => {
    // Nodes are free, so no treasury node has to start.
    server = await startDashboard({ NODE_PRICE_SAT_PER_DAY: '0' })
  })

  test('C55–C60: create, test, see a failed delivery, send it again, rotate the secret, replay, disable, edit, delete', async () => {
    const receiver = await openReceiver()
    // Not in UTC, because a period is entered in local time.
    const person = await newPerson(server, { timezoneId: 'America/Los_Angeles' })
    const { page } = person
    await person.open('developers')
    await page.getByRole('tab', { name: 'Webhooks' }).click()
    await page.getByText('You have no webhooks yet.').waitFor()
    await untilText(page.getByRole('region', { name: 'On your laptop' }), 'boltyard listen --forward-to')
    const receiving = page.getByRole('region', { name: 'Your receiver' })
    await untilText(receiving.getByRole('region', { name: 'Receiver in TypeScript' }), 'verifyWebhook(request.body')
    await receiving.getByRole('tab', { name: 'Python' }).click()
    await untilText(receiving.getByRole('region', { name: 'Receiver in Python' }), 'webhook.verify(await request.body()')

    // A refusal is shown next to its field, which gets the focus and names the error to a screen reader.
    await page.getByRole('button', { name: 'Create webhook' }).click()
    const creating = dialog(page, 'Create a webhook')
    const url = creating.getByRole('textbox', { name: 'URL' })
    await url.fill('ftp://127.0.0.1/hook')
    await creating.getByRole('button', { name: 'Create webhook' }).click()
    await creating.getByText('The URL must begin with https:// or http://.').waitFor()
    expect(await url.evaluate((field: any) => field === field.ownerDocument.activeElement)).toBe(true)
    expect(await url.getAttribute('aria-invalid')).toBe('true')
    await url.fill(receiver.url)
    await creating.getByRole('radio', { name: 'Only selected events' }).check()
    expect(await creating.getByRole('button', { name: 'Create webhook' }).isDisabled()).toBe(true)
    await creating.getByRole('checkbox', { name: 'key.created' }).check()
    await creating.getByRole('checkbox', { name: 'credit.*' }).check()
    await creating.getByRole('button', { name: 'Create webhook' }).click()

    const storing = dialog(page, 'Store the secret of the webhook')
    await untilText(storing, 'It will not be shown again.')
    const first = (await readSecrets(storing, ['Webhook secret']))['Webhook secret'] ?? ''
    expect(first).toMatch(/^whsec_/)
    await closeSecrets(storing)
    await heading(page, 'Webhook Enabled').waitFor()
    await untilText(page.getByRole('region', { name: 'Details' }), 'Events key.created, credit.* Nodes All nodes')
    expect(await page.content()).not.toContain(first)

    await page.getByLabel('Type').selectOption('credit.low')
    await page.getByRole('button', { name: 'Send test event' }).click()
    await untilText(page.getByRole('status', { name: 'Result of the test' }), /^Status 200 after [\d ]+ ms thank you$/)
    const [sample] = await receiver.until(1)
    if (!sample) throw new Error('nothing was received')
    expect(verified(first, sample)).toMatchObject({ type: 'credit.low', test: true })

    // An event whose delivery fails appears without a reload.
    receiver.respond = answers(500)
    await page.evaluate('window.mark = 1')
    await person.want(201, 'POST', '/keys', { json: { name: 'Shop', scopes: [] } })
    const row = page.getByRole('list', { name: 'Deliveries' }).getByRole('listitem').first()
    await untilText(row, /^key\.created evt_\w+ .* · The response was 500\. · next attempt .* Pending Send again/)
    await heading(page, 'Webhook Failing').waitFor()
    receiver.respond = ok
    await row.getByRole('button', { name: /^Send again: key\.created evt_/ }).click()
    await untilText(row, 'status 200 Delivered')
    await heading(page, 'Webhook Enabled').waitFor()
    expect(await page.evaluate('window.mark')).toBe(1)
    await row.getByText(/^\d attempts$/).click()
    await untilText(row, /Status 200 after .* thank you .* Status 500 after .* status 500$/)
    await page.getByLabel('Status of deliveries').selectOption('Failed')
    await page.getByText('No deliveries have this status.').waitFor()
    await page.getByLabel('Status of deliveries').selectOption('Delivered')
    await row.waitFor()

    await page.getByRole('button', { name: 'Rotate secret…' }).click()
    const rotating = dialog(page, 'Rotate the secret?')
    await rotating.getByLabel('Keep the current secret for').selectOption('1 hour')
    await rotating.getByRole('button', { name: 'Rotate secret' }).click()
    const keeping = dialog(page, 'Store the new secret')
    const second = (await readSecrets(keeping, ['Webhook secret']))['Webhook secret'] ?? ''
    expect(second).not.toBe(first)
    await closeSecrets(keeping)

    // A replay has the same id, and is signed with both secrets.
    const seen = receiver.received.length
    await page.getByRole('button', { name: 'Replay…' }).click()
    await dialog(page, 'Replay events').getByRole('button', { name: 'Replay' }).click()
    await page.getByText('1 event is being sent again').waitFor()
    const replayed = (await receiver.until(seen + 1))[seen]
    if (!replayed) throw new Error('nothing was replayed')
    for (const secret of [first, second]) expect(verified(secret, replayed).type).toBe('key.created')
    const [, ...ids] = receiver.ids()
    expect(new Set(ids).size).toBe(1)

    await page.getByRole('button', { name: 'Disable' }).click()
    await heading(page, 'Webhook Disabled').waitFor()
    await page.getByText('This webhook is disabled.').waitFor()
    await page.getByRole('button', { name: 'Enable' }).click()
    await heading(page, 'Webhook Enabled').waitFor()
    await page.getByRole('button', { name: 'Edit…' }).click()
    const editing = dialog(page, 'Edit the webhook')
    await editing.getByLabel('Description').fill('Shop server')
    await editing.getByRole('radio', { name: 'All events' }).check()
    await editing.getByRole('button', { name: 'Save' }).click()
    await untilText(page.getByRole('region', { name: 'Details' }), /Description Shop server Events All events/)

    await page.getByRole('link', { name: 'All webhooks' }).click()
    const listed = page.getByRole('list', { name: 'Webhooks' }).getByRole('link')
    await untilText(listed, /\/hook Shop server All events · last success .* Enabled$/)
    await listed.click()
    await page.getByRole('button', { name: 'Delete webhook…' }).click()
    await dialog(page, 'Delete this webhook?').getByRole('button', { name: 'Delete webhook' }).click()
    await page.getByText('You have no webhooks yet.').waitFor()
    expect(await person.want(200, 'GET', '/webhooks')).toEqual({ webhooks: [] })
  })

  test('dashboard: a button to create something does not move, because it appears once its list has loaded', async () => {
    const person = await newPerson(server)
    const { page } = person
    const cases = [
      ['developers', 'keys', 'Create API key'],
      ['developers/webhooks', 'webhooks', 'Create webhook'],
      ['nodes', 'nodes', 'Create node'],
    ] as const
    for (const [path, resource, name] of cases) {
      let release = (): void => undefined
      const held = new Promise<void>((resolve) => {
        release = resolve
      })
      await page.route(`**/dashboard/api/${resource}`, async (route) => {
        await held
        await route.continue()
      })
      await person.open(path)
      await page.locator('[aria-busy=true]').first().waitFor()
      expect([path, await page.getByRole('button', { name }).count()]).toEqual([path, 0])
      release()
      await page.getByRole('button', { name }).waitFor()
      await page.unroute(`**/dashboard/api/${resource}`)
    }
    await person.open('developers')
    await (await openKeyDialog(page)).waitFor()
  })
})
