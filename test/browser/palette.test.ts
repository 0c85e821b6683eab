import axe from 'axe-core'
import type { Locator, Page } from 'playwright-core'
import { beforeAll, expect, test } from 'vitest'
import type { Server } from '../../server/test/support/server.ts'
import { FADED } from '../../testing/chromium.ts'
import { dialog, heading, inBrowser, newPerson, startDashboard, untilText } from './harness.ts'

const NARROW = { width: 360, height: 740 }

async function findingsIn(page: Page): Promise<string[]> {
  await page.evaluate(FADED)
  type Finding = { id: string; nodes: { html: string }[] }
  const { violations } = await page.evaluate<{ violations: Finding[] }>(`axe.run('[role=dialog]')`)
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 200)).join(' ')}`)
}

const hasFocus = (element: Locator): Promise<boolean> => element.evaluate((one: any) => one === one.ownerDocument.activeElement)

inBrowser('the command palette and the keys', () => {
  let server: Server
  beforeAll(async () => {
    server = await startDashboard()
  })

  test('palette: by keyboard to a page, a key and an action, and the focus returns', async () => {
    const person = await newPerson(server)
    await person.want(201, 'POST', '/keys', { json: { name: 'Shop server', scopes: [] } })
    const page = await person.open()
    await heading(page, 'Overview').waitFor()
    const button = page.getByRole('button', { name: 'Search… everything' })
    const palette = dialog(page, 'Search or jump to')
    const field = palette.getByRole('combobox')

    await button.focus()
    await page.keyboard.press('Control+k')
    await expect.poll(() => hasFocus(field)).toBe(true)
    await page.keyboard.press('Escape')
    await palette.waitFor({ state: 'detached' })
    expect(await hasFocus(button)).toBe(true)

    await page.keyboard.press('Enter')
    await field.fill('zzz')
    await untilText(palette.getByRole('status'), 'Nothing else found for “zzz”.')
    await field.fill('shop')
    const option = palette.getByRole('option', { name: 'Shop server' })
    await option.waitFor()
    expect(await option.getAttribute('aria-selected')).toBe('true')
    expect(await field.getAttribute('aria-activedescendant')).toBe(await option.getAttribute('id'))
    await page.keyboard.press('Enter')
    await heading(page, 'Developers').waitFor()
    await expect.poll(() => hasFocus(heading(page, 'Developers'))).toBe(true)

    // In a field, letters are typed; elsewhere, they open pages.
    await page.keyboard.press('Control+k')
    await field.fill('create api')
    await page.keyboard.press('Enter')
    await dialog(page, 'Create an API key').getByLabel('Name').pressSequentially('gn?')
    expect(await dialog(page, 'Create an API key').getByLabel('Name').inputValue()).toBe('gn?')
    await page.keyboard.press('Escape')
    await dialog(page, 'Create an API key').waitFor({ state: 'detached' })
    await page.keyboard.press('g')
    await page.keyboard.press('n')
    await heading(page, 'Nodes').waitFor()
  })

  test('palette: a node is stopped and started, with the question of its page', async () => {
    const person = await newPerson(server)
    await person.createReady({ name: 'Tea shop' })
    const page = await person.open()
    await heading(page, 'Overview').waitFor()
    const palette = dialog(page, 'Search or jump to')
    const choose = async (query: string, name: string): Promise<void> => {
      await page.keyboard.press('Control+k')
      await palette.getByRole('combobox').fill(query)
      await palette.getByRole('option', { name }).waitFor()
      await page.keyboard.press('Enter')
    }
    await choose('restart tea', 'Restart Tea shop…')
    await dialog(page, 'Restart Tea shop?').getByRole('button', { name: 'Cancel' }).click()
    await choose('stop tea', 'Stop Tea shop…')
    await untilText(dialog(page, 'Stop Tea shop?'), 'Customers cannot pay this node until you start it again.')
    await dialog(page, 'Stop Tea shop?').getByRole('button', { name: 'Stop node' }).click()
    await heading(page, 'Tea shop Stopped').waitFor()
    await page.getByRole('button', { name: 'Start', exact: true }).waitFor()
    await choose('start tea', 'Start Tea shop')
    await heading(page, 'Tea shop Ready').waitFor()

    // From the page of another node.
    await person.createReady({ name: 'Coffee bar' })
    await choose('stop tea', 'Stop Tea shop…')
    await dialog(page, 'Stop Tea shop?').getByRole('button', { name: 'Cancel' }).click()
    await choose('stop coffee', 'Stop Coffee bar…')
    await dialog(page, 'Stop Coffee bar?').getByRole('button', { name: 'Stop node' }).click()
    await heading(page, 'Coffee bar Stopped').waitFor()

    // A refusal is shown, although the overview, which was open, has the same button.
    await page.getByRole('tab', { name: 'Overview' }).click()
    await page.getByText('The node is stopped. Its money and data are safe').waitFor()
    await page.route('**/start', (route) =>
      route.fulfill({ status: 402, json: { error: { code: 'insufficient_credit', message: 'Not enough credit.' } } }),
    )
    await choose('start coffee', 'Start Coffee bar')
    await untilText(page.getByRole('alert'), 'Not enough credit.')
  })

  test('WCAG 2.1.4: single keys can be turned off, and ? lists them', async () => {
    const person = await newPerson(server)
    const page = await person.open('settings')
    await heading(page, 'Settings').waitFor()
    await page.keyboard.press('?')
    await dialog(page, 'Keyboard shortcuts').getByText('Go to Payments').waitFor()
    await page.keyboard.press('Escape')
    await dialog(page, 'Keyboard shortcuts').waitFor({ state: 'detached' })
    await page.getByRole('radiogroup', { name: 'Keyboard shortcuts' }).getByText('Off').click()
    await heading(page, 'Settings').focus()
    for (const key of ['?', 'g', 'n']) await page.keyboard.press(key)
    expect(await page.getByRole('dialog').count()).toBe(0)
    expect(page.url()).toMatch(/settings$/)
    // The shortcut of the palette stays, because it needs a modifier.
    await page.keyboard.press('Control+k')
    await dialog(page, 'Search or jump to').waitFor()
  })

  test('axe finds nothing in the palette and the list of keys, light and dark, wide and at 360 px', async () => {
    const person = await newPerson(server)
    const page = await person.open()
    await heading(page, 'Overview').waitFor()
    await page.evaluate(axe.source)
    const found: string[] = []
    const look = async (name: string): Promise<void> => {
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme })
        await page.locator(`html[data-mantine-color-scheme=${colorScheme}]`).waitFor()
        found.push(...(await findingsIn(page)).map((finding) => `${name} ${colorScheme}: ${finding}`))
      }
    }
    await page.keyboard.press('?')
    await dialog(page, 'Keyboard shortcuts').waitFor()
    await look('keys')
    await page.keyboard.press('Escape')
    await dialog(page, 'Keyboard shortcuts').waitFor({ state: 'detached' })
    await page.setViewportSize(NARROW)
    await page.getByRole('button', { name: 'Search everything', exact: true }).click()
    const palette = dialog(page, 'Search or jump to')
    await palette.getByRole('combobox').fill('o')
    await palette.getByRole('option').first().waitFor()
    await look('palette')
    const sideways = `[...document.querySelectorAll('[role=dialog], [role=dialog] *')].filter(({ scrollWidth, clientWidth }) =>
      clientWidth > 1 && scrollWidth > clientWidth + 1).map(({ className }) => className)`
    expect([found, await page.evaluate(sideways)]).toEqual([[], []])
    expect(await palette.evaluate((box: any) => box.getBoundingClientRect().right)).toBeLessThanOrEqual(NARROW.width)
  })
})
