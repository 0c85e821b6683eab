import { beforeAll, expect, test } from 'vitest'
import type { Server } from '../../server/test/support/server.ts'
import {
  closeSecrets,
  dialog,
  inBrowser,
  newPerson,
  openKeyDialog,
  readSecrets,
  startDashboard,
  textOf,
  untilText,
} from './harness.ts'

inBrowser('the page of API keys and the log of requests', () => {
  let server: Server
  beforeAll(async () => {
    server = await startDashboard()
  })

  test('dashboard: C84, C85: a key is created with an expiry, used, rotated and edited, and its requests are listed', async () => {
    const person = await newPerson(server)
    const { page } = person
    for (let index = 0; index < 8; index++)
      await person.want(201, 'POST', '/keys', { json: { name: `Till ${index}`, scopes: [] } })
    await person.open('developers')
    const making = await openKeyDialog(page)
    await making.getByLabel('Name').fill('Shop')
    await making.getByLabel('Expires').selectOption('In 7 days')
    await making.getByRole('button', { name: 'Create key' }).click()
    const box = dialog(page, 'Store the key Shop')
    const old = (await readSecrets(box, ['API key']))['API key'] ?? ''
    await closeSecrets(box)

    // The new key is the first in the list, and is marked as new.
    const keys = page.getByRole('list', { name: 'API keys' }).locator('> li')
    await untilText(keys.first(), /Shop.*New.*Read.*Gateway.*never used expires in/)
    await page.getByLabel('Find a key').fill('till 3')
    await expect.poll(() => keys.count()).toBe(1)
    await page.getByLabel('Find a key').fill('')

    const status = async (key: string, path = '/api-key') =>
      (await fetch(`${server.url}/v1${path}`, { headers: { authorization: `Bearer ${key}`, 'x-request-id': 'my-request' } }))
        .status
    expect([await status(old), await status(old, '/nodes/node_x')]).toEqual([200, 404])

    await page.getByRole('button', { name: 'Rotate Shop' }).click()
    await dialog(page, 'Rotate Shop?').getByRole('button', { name: 'Rotate key' }).click()
    const rotating = dialog(page, 'Store the new secret of Shop')
    const secret = (await readSecrets(rotating, ['API key']))['API key'] ?? ''
    await closeSecrets(rotating)
    expect([secret === old, await status(old), await status(secret)]).toEqual([false, 200, 200])
    await untilText(keys.first(), /rotated .* · the earlier secret stops working in 2\d hours/)

    await page.getByRole('button', { name: 'Edit Shop' }).click()
    const editing = dialog(page, 'Edit Shop')
    await editing.getByLabel('Name').fill('Store')
    await editing.getByRole('checkbox', { name: 'Gateway' }).uncheck()
    await editing.getByRole('checkbox', { name: 'Events' }).check()
    await editing.getByRole('button', { name: 'Save' }).click()
    await untilText(keys.first(), /^Store.*Read.*Events.*expires in 7 days/)

    await person.open('developers')
    await page
      .getByRole('link', { name: '4 requests in 30 days, 1 error' })
      .or(page.getByRole('link', { name: /^4 requests since/ }))
      .click()
    const rows = page.getByRole('table', { name: 'API requests' }).locator('tbody tr')
    await expect.poll(() => rows.count()).toBe(4)
    await page.getByLabel('Status').selectOption('Refused (4xx)')
    await expect.poll(() => rows.count()).toBe(1)
    await rows.getByRole('button').press('Enter')
    const details = dialog(page, 'Request')
    await untilText(details, /GET \/v1\/nodes\/\{nodeId\}.*404.*node_not_found.*no node with this id.*my-request.*Store/)

    // What was sent with a key can still be found when the key is gone.
    const store = (await person.want(200, 'GET', '/keys')).keys.find(({ name }: { name: string }) => name === 'Store')
    await person.want(204, 'DELETE', `/keys/${store.id}`)
    await person.open('developers/requests')
    await expect.poll(() => page.getByLabel('Key', { exact: true }).textContent()).toContain('Store\u2069 (revoked)')
    await page.getByLabel('Key', { exact: true }).selectOption(store.id)
    await expect.poll(() => rows.count()).toBe(4)
    await expect.poll(() => page.url()).toContain(store.id)
    const requestId = page.getByLabel('Request id')
    await requestId.fill('req 12/3 ü')
    await requestId.press('Enter')
    await page.getByText('A request id has 1 to 64 letters').waitFor()
    expect([await rows.count(), page.url()]).toEqual([4, expect.not.stringContaining('requestId')])
    await requestId.fill(' my-request ')
    await requestId.press('Enter')
    await expect.poll(() => page.url()).toContain('requestId=my-request')
    expect(await page.getByText('A request id has 1 to 64 letters').count()).toBe(0)
  })

  test('dashboard: a search that only a revoked key matches says what became of it, and not that no key matches', async () => {
    const person = await newPerson(server)
    const { page } = person
    let first = ''
    for (let index = 0; index < 9; index++) {
      const { id, key } = await person.want(201, 'POST', '/keys', { json: { name: `Server ${index}`, scopes: [] } })
      first = key.slice(0, 8)
      if (index === 8) await person.want(204, 'DELETE', `/keys/${id}`)
    }
    await person.open('developers')
    const main = page.getByRole('main')
    for (const search of ['server 8', first]) {
      await page.getByLabel('Find a key').fill(search)
      await untilText(main, 'Server 8 was revoked. Who revoked it?')
      expect(await textOf(main)).not.toContain('No key matches')
    }
    await page.getByLabel('Find a key').fill('till')
    await untilText(main, 'No key matches this search. Revoked keys are not listed.')
    await main.getByRole('button', { name: 'Show all keys' }).click()
    await page.getByRole('button', { name: 'Edit Server 0' }).waitFor()
  })

  test('dashboard: of many keys, ten are shown, so that the quick start is near; a search and a link show the others', async () => {
    const person = await newPerson(server)
    const { page } = person
    for (let index = 0; index < 12; index++)
      await person.want(201, 'POST', '/keys', { json: { name: `Worker ${index}.`, scopes: [] } })
    const all = (await person.want(200, 'GET', '/keys')).keys
    const oldest = all.find(({ name }: { name: string }) => name === 'Worker 0.')
    const keys = page.getByRole('list', { name: 'API keys' }).locator('> li')
    await person.open('developers')
    await untilText(keys.first(), 'Worker 11.')
    expect(await keys.count()).toBe(10)
    await page.getByLabel('Find a key').fill('worker 0.')
    await expect.poll(() => keys.count()).toBe(1)
    await page.getByLabel('Find a key').fill('')
    await page.getByRole('button', { name: `Show all ${all.length} keys` }).click()
    await expect.poll(() => keys.count()).toBe(all.length)

    // The command palette leads to such an address.
    await page.goto('about:blank')
    await person.open(`developers#${oldest.id}`)
    await page.getByRole('button', { name: 'Edit Worker 0.' }).waitFor()
  })
})
