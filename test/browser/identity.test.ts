import { beforeAll, expect, test } from 'vitest'
import type { Server } from '../../server/test/support/server.ts'
import { dialog, enter, inBrowser, newPerson, openKeyDialog, type Person, startDashboard } from './harness.ts'
import { payCharge, untilLoaded } from './pages.ts'

/** A right-to-left name, which reorders the rest of its line unless it is isolated. */
const HOSTILE = 'متجر <b>18'
/** A4 within the margins of 16 mm that print.css sets, at 96 pixels per inch. */
const PAPER = { width: 673, height: 1_000 }

const PHONE = { width: 360, height: 740 }

/** The vertical middles of two elements, which must be in line. */
const MIDDLES = (parts: string[]): string => `${JSON.stringify(parts)}.map((part) => {
  const { top, bottom } = document.querySelector(part).getBoundingClientRect()
  return Math.round((top + bottom) / 2)
})`

/** What can be clicked and is under the message, and whether a click on the message reaches the page. */
const UNDER_MESSAGE = `(() => {
  const message = document.querySelector('.toast')
  const { left, right, top, bottom } = message.getBoundingClientRect()
  const found = [...document.querySelectorAll('button, a:not(.brand), input')].filter((element) => {
    const box = element.getBoundingClientRect()
    return box.width > 1 && box.left < right && box.right > left && box.top < bottom && box.bottom > top
  })
  if (document.elementFromPoint((left + right) / 2, (top + bottom) / 2) === message) found.push(message)
  return found.map(({ outerHTML }) => outerHTML.slice(0, 120))
})()`

/** How far the last mark of the chart is from its right edge, in pixels. */
const CHART_END = `(() => {
  const canvas = document.querySelector('.chart canvas')
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height)
  let last = 0
  for (let at = 3; at < data.length; at += 4) if (data[at] > 0) last = Math.max(last, ((at - 3) / 4) % canvas.width)
  return Math.round((canvas.width - 1 - last) / devicePixelRatio)
})()`

/** Text with a hostile name in an element that does not isolate it. */
const UNISOLATED = `(() => {
  const found = []
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  while (texts.nextNode()) {
    const { data, parentElement } = texts.currentNode
    if (data.includes('متجر') && !parentElement.closest('bdi, [dir=auto], option, pre, .mantine-VisuallyHidden-root'))
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
    await person.open('developers')
    await page.getByRole('button', { name: `Disable ${HOSTILE}` }).click()
    await page.locator('.toast').getByText('disabled').waitFor()
    isolated['a message'] = await page.evaluate<string[]>(UNISOLATED)
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

  test('at 360 px: the menu’s cross is beside the logo, a copy button beside its text, and a message covers no button', async () => {
    const { page, open } = await enter(person, { viewport: PHONE })
    await open()
    await page.getByRole('button', { name: 'Menu', exact: true }).click()
    await page.getByRole('button', { name: 'Close menu' }).waitFor()
    const [brand = 0, cross = 99] = await page.evaluate<number[]>(
      MIDDLES(['[role=dialog] .brand > :first-child', '[aria-label="Close menu"]']),
    )
    expect(Math.abs(brand - cross)).toBeLessThanOrEqual(1)

    await open(`nodes/${nodeId}?tab=connect`)
    await page.getByRole('button', { name: 'Copy endpoint' }).waitFor()
    const [text = 0, copy = 99] = await page.evaluate<number[]>(MIDDLES(['p > .mono', '[aria-label="Copy endpoint"]']))
    expect(Math.abs(text - copy)).toBeLessThanOrEqual(1)

    await open('developers')
    const making = await openKeyDialog(page)
    await making.getByLabel('Name').fill('Phone')
    await making.getByRole('button', { name: 'Create key' }).click()
    await dialog(page, 'Store the key Phone').getByRole('button', { name: 'Copy API key' }).click()
    await page.locator('.toast:not(:empty)').waitFor()
    expect(await page.evaluate(UNDER_MESSAGE)).toEqual([])
  })

  test('the chart ends where its card does, with its last label, and a field for a number is not as wide as the page', async () => {
    const { page, open } = await enter(person)
    for (const span of ['24 hours', '7 days', '30 days']) {
      await open()
      await page.getByText(span, { exact: true }).click()
      await page.locator('.chart canvas').waitFor()
      await expect.poll(() => page.evaluate<number>(CHART_END)).toBeLessThan(6)
    }
    await open(`nodes/${nodeId}?tab=invoice`)
    const field = await page.getByLabel('Amount in sat').boundingBox()
    expect(field?.width).toBeLessThan(200)
  })
})
