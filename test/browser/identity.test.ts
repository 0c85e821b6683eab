import { beforeAll, expect, test } from 'vitest'
import type { Server } from '../../server/test/support/server.ts'
import { inBrowser, newPerson, type Person, startDashboard } from './harness.ts'
import { payCharge, untilLoaded } from './pages.ts'

/** A right-to-left name, which reorders the rest of its line unless it is isolated. */
const HOSTILE = 'متجر <b>18'
/** A4 within the margins of 16 mm that print.css sets, at 96 pixels per inch. */
const PAPER = { width: 673, height: 1_000 }

/** Text with a hostile name in an element that does not isolate it. */
const UNISOLATED = `(() => {
  const found = []
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  while (texts.nextNode()) {
    const { data, parentElement } = texts.currentNode
    if (data.includes('متجر') && !parentElement.closest('bdi, [dir=auto], option, pre, .mantine-VisuallyHidden-root, .toast'))
      found.push(parentElement.outerHTML.slice(0, 200))
  }
  return found
})()`

inBrowser('the identity of the dashboard', () => {
  let server: Server
  let person: Person
  let [nodeId, paymentId] = ['', '']

  beforeAll(async () => {
    server = await startDashboard()
    person = await newPerson(server)
    nodeId = (await person.createReady({ name: HOSTILE })).node.id
    paymentId = await payCharge(person, nodeId, 1_234, HOSTILE, 'redeem')
    await person.want(201, 'POST', '/keys', { json: { name: HOSTILE, scopes: ['nodes:read'] } })
    const webhook = { url: 'http://127.0.0.1:9/', nodeIds: [nodeId], description: HOSTILE }
    await person.want(201, 'POST', '/webhooks', { json: webhook })
  }, 600_000)

  test('a hostile name is isolated on every page, the typeface comes from the service, and paper has neither menu nor cut tables', async () => {
    const { page } = person
    const fonts: string[] = []
    person.context.on('request', (request) => {
      if (request.resourceType() === 'font') fonts.push(request.url())
    })
    const isolated: Record<string, string[]> = {}
    const pages = ['', 'nodes', `nodes/${nodeId}`, `nodes/${nodeId}?tab=payments`, 'gateway', `gateway/payments/${paymentId}`]
    for (const path of [...pages, 'developers', 'developers/webhooks', 'credit', 'activity']) {
      await person.open(path)
      await untilLoaded(page)
      isolated[path] = await page.evaluate<string[]>(UNISOLATED)
    }
    expect(Object.entries(isolated).filter(([, found]) => found.length > 0)).toEqual([])
    expect(await page.evaluate(`document.fonts.check('16px "Schibsted Grotesk"')`)).toBe(true)
    expect(fonts.length).toBeGreaterThan(0)
    expect(fonts.filter((url) => !url.startsWith(`${server.url}/dashboard/assets/`))).toEqual([])

    await page.emulateMedia({ media: 'print', colorScheme: 'dark' })
    await page.setViewportSize(PAPER)
    for (const path of ['gateway', 'credit', `gateway/payments/${paymentId}`]) {
      await person.open(path)
      await untilLoaded(page)
      expect([path, await page.getByRole('navigation', { name: 'Main' }).count()]).toEqual([path, 0])
      expect([path, await page.evaluate('document.scrollingElement.scrollWidth')]).toEqual([path, PAPER.width])
      const [ink, paper] = await page.evaluate<string[]>(
        `[getComputedStyle(document.querySelector('h1')).color, getComputedStyle(document.body).backgroundColor]`,
      )
      expect([path, ink, paper]).toEqual([path, 'rgb(0, 0, 0)', 'rgb(255, 255, 255)'])
    }
    await page.getByText(/^Receipt: the node received the money on /).waitFor()
    await page.emulateMedia({ media: 'screen' })
    await page.getByRole('button', { name: 'Print receipt' }).waitFor()
  })
})
