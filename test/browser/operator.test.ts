import type { Page } from 'playwright-core'
import { beforeAll, expect, test } from 'vitest'
import { signUp } from '../../server/test/support/dashboard.ts'
import type { Server } from '../../server/test/support/server.ts'
import { dialog, heading, inBrowser, newContext, newPerson, startDashboard, textOf, untilText } from './harness.ts'

inBrowser('the operator’s pages', () => {
  let server: Server
  beforeAll(async () => {
    server = await startDashboard({ OPERATOR_TOKEN: 'x'.repeat(40), NODE_PRICE_SAT_PER_DAY: '0' })
  })

  const enterAsOperator = async (): Promise<Page> => {
    const page = await (await newContext()).newPage()
    await page.goto(`${server.url}/dashboard/operator`)
    await page.getByRole('textbox', { name: 'Operator token' }).fill(server.operatorToken)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await heading(page, 'Accounts').waitFor()
    return page
  }

  test('dashboard: whoever copies the command that prints the token can paste the token at once', async () => {
    const page = await (await newContext()).newPage()
    await page.route('**/dashboard/api/me', async (route) => {
      const response = await route.fetch()
      await route.fulfill({ response, json: { ...(await response.json()), operatorTokenFile: '/data/operator.token' } })
    })
    await page.goto(`${server.url}/dashboard/operator`)
    await page.getByRole('button', { name: 'Copy: Print the operator token' }).click()
    await page.getByText('Copied', { exact: true }).waitFor()
    expect(await page.evaluate('document.activeElement.name')).toBe('operator-token')
  })

  test('C86: where no node is deleted or needs attention, the picture does not suggest creating one', async () => {
    const page = await enterAsOperator()
    const nobody = await newPerson(server)
    await nobody.open('nodes')
    const asksToCreate = await nobody.page.locator('.empty .art').innerHTML()
    for (const place of ['deleted', 'nodes?state=failed']) {
      await page.goto(`${server.url}/dashboard/operator/${place}`)
      await page.getByText(/^No (deleted node is kept|node needs attention)/).waitFor()
      expect(await page.locator('.empty .art').innerHTML()).not.toBe(asksToCreate)
    }
  })

  test('dashboard: no item of the operator’s menu moves when another one is chosen', async () => {
    const page = await enterAsOperator()
    const links = page.getByRole('navigation', { name: 'Operator' }).getByRole('link')
    const places = () =>
      links.locator('svg').evaluateAll((all: any[]) => all.map((icon) => icon.getBoundingClientRect().toJSON()))
    const before = await places()
    for (const name of ['Hosts and versions', 'Background work']) {
      await links.filter({ hasText: name }).click()
      await heading(page, name).waitFor()
      expect(await places()).toEqual(before)
    }
  })

  test('dashboard: at 360 px, the text of each row in the operator’s lists has the whole line', async () => {
    const ann = await signUp(server)
    await ann.createReady({ name: 'shop' })
    const page = await enterAsOperator()
    await page.setViewportSize({ width: 360, height: 740 })
    const lists = {
      accounts: 'Accounts',
      [`accounts/${ann.accountId}`]: 'Activity',
      nodes: 'Nodes',
      background: 'Background work',
    }
    for (const [place, name] of Object.entries(lists)) {
      await page.goto(`${server.url}/dashboard/operator/${place}`)
      const rows = page.getByRole('list', { name, exact: true }).getByRole('listitem')
      await rows.first().waitFor()
      const narrow = await rows.evaluateAll((all: any[]) =>
        all.filter((row) => row.querySelector('.row-main').clientWidth < row.clientWidth - 40).map((row) => row.textContent),
      )
      expect([place, narrow]).toEqual([place, []])
    }
  })

  test('C86: sign in, give someone access again, add credit once, restore a node, and sign out', async () => {
    const ann = await signUp(server)
    await signUp(server)
    const { node } = await ann.createReady({ name: 'shop' })
    await ann.want(204, 'DELETE', `/nodes/${node.id}?force=true`)
    const page = await (await newContext()).newPage()
    const asked: string[] = []
    page.on('request', (request) => asked.push(new URL(request.url()).pathname))
    await page.goto(`${server.url}/dashboard/operator`)
    const token = page.getByRole('textbox', { name: 'Operator token' })
    const banners = ['Sandbox: no real money', 'Operator area: all customers']
    await expect.poll(() => page.locator('aside').allInnerTexts()).toEqual(banners)
    await token.fill('y'.repeat(40))
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByText('This is not the operator token.').waitFor()
    await token.fill(server.operatorToken)
    // As behind a proxy with another address: the token is not what is wrong.
    await page.route('**/operator/session', async (route) => {
      const headers = { ...route.request().headers(), origin: 'http://proxy.example' }
      await route.fulfill({ response: await route.fetch({ headers }) })
    })
    await page.getByRole('button', { name: 'Sign in' }).click()
    const alert = page.getByRole('alert')
    await untilText(alert, /This request is only accepted from http:.* Open the dashboard at that address and try again\./)
    expect(await textOf(alert)).not.toContain('token')
    await page.unroute('**/operator/session')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await heading(page, 'Accounts').waitFor()
    expect((await page.locator('aside').allInnerTexts()).slice(0, 2)).toEqual(banners)

    await page.getByRole('searchbox', { name: 'Find a person or an account' }).fill(ann.email)
    const rows = page.getByRole('list', { name: 'Accounts' }).getByRole('listitem')
    await expect.poll(() => rows.count()).toBe(1)
    await rows.getByRole('button', { name: /^Give access to / }).click()
    const giving = dialog(page, /^Give access to /)
    await untilText(giving, 'Using the link turns off their two-factor sign-in, if it is on.')
    await page.getByRole('button', { name: 'Create and copy link' }).click()
    await untilText(
      giving,
      /Copied\. Send this link to person\d+@example\.com\. Whoever has it can sign in as person.*It works once, until \d+ \w+ \d{4}, \d\d:\d\d:\d\d UTC\./,
    )
    const link = await textOf(giving.locator('pre'))
    expect(link).toMatch(/\/dashboard\/link#[\w-]{43}$/)
    // The link is not shown again, so the button that stands out is the one that copies it.
    const copy = giving.getByRole('button', { name: /^Copy/ })
    expect([await copy.count(), await copy.getAttribute('data-variant')]).toEqual([1, 'filled'])
    expect(await copy.evaluate((button: any) => button === button.ownerDocument.activeElement)).toBe(true)
    await giving.getByRole('button', { name: 'Done' }).click()
    // The link signs Ann in, in another browser.
    const elsewhere = await (await newContext()).newPage()
    await elsewhere.goto(link)
    await elsewhere.getByText(ann.email).first().waitFor()

    await rows.getByRole('link').click()
    await page.getByRole('button', { name: 'Add or deduct credit…' }).click()
    const credit = dialog(page, /^Credit of /)
    await credit.getByLabel('Amount in sat').fill('2500')
    await credit.getByLabel('Reason').fill('Sorry')
    await credit.getByRole('button', { name: 'Continue' }).click()
    const before = (await server.operator('GET', `/accounts/${ann.accountId}`)).json().creditSat
    // The response is lost, the operator closes the dialog and tries again, and the credit is added once.
    await page.route('**/credit', async (route) => {
      await route.fetch()
      await route.abort()
    })
    await credit.getByRole('button', { name: /^Add 2.500.sat$/ }).click()
    await credit.getByText('This may or may not have worked.').waitFor()
    await page.unroute('**/credit')
    await page.keyboard.press('Escape')
    await credit.waitFor({ state: 'hidden' })
    await page.getByRole('button', { name: 'Add or deduct credit…' }).click()
    await untilText(credit, /You sent this before, and it may or may not have worked/)
    await credit.getByRole('button', { name: 'Continue' }).click()
    await credit.getByRole('button', { name: /^Add 2.500.sat$/ }).click()
    await untilText(credit, 'Added: 2 500 sat. The balance in the ledger is now')
    await credit.getByRole('button', { name: 'Done' }).click()
    expect((await server.operator('GET', `/accounts/${ann.accountId}`)).json().creditSat).toBe(before + 2_500)
    await untilText(page.getByRole('list', { name: 'Activity' }), /Credit was added: 2 500 sat \(Sorry\) by the operator/)

    const menu = page.getByRole('navigation', { name: 'Operator' })
    await menu.getByRole('link', { name: 'Deleted nodes' }).click()
    await heading(page, 'Deleted nodes').waitFor()
    const deleted = page.getByRole('list', { name: 'Nodes' }).getByRole('listitem')
    await untilText(deleted, /^shop node_\w+ .* its data is removed for good in 30 days, on /)
    await deleted.getByRole('button', { name: 'Restore shop' }).click()
    await dialog(page, 'Restore shop?').getByRole('button', { name: 'Restore node' }).click()
    await page.getByText('No deleted node is kept at the moment.').waitFor()
    await ann.until(node.id, 'stopped')

    // Everything goes through the operator API.
    const calls = asked.filter(
      (path) => !/^\/dashboard\/(assets\/|operator|api\/(me|operator\/session)$|[\w-]+\.\w+$)/.test(path),
    )
    expect(calls.filter((path) => !path.startsWith('/operator/v1/'))).toEqual([])
    expect(await page.evaluate('JSON.stringify([localStorage, sessionStorage, document.cookie])')).not.toContain('x'.repeat(40))
    await page.getByRole('button', { name: 'Sign out' }).click()
    await token.waitFor()
    expect(await page.content()).not.toContain(ann.email)
  })

  test('C86: someone who has an account is not invited: the field says so, until another address is entered', async () => {
    const ann = await signUp(server)
    const page = await enterAsOperator()
    await page.getByRole('button', { name: 'Invite someone…' }).click()
    const inviting = dialog(page, 'Invite someone')
    const field = inviting.getByLabel('Email address')
    await field.fill(ann.email)
    await inviting.getByRole('button', { name: 'Create and copy link' }).click()
    await untilText(
      inviting.getByRole('alert'),
      /^This person already has an account\. Use “Give access…” next to their account in the list\.$/,
    )
    expect(await field.getAttribute('aria-invalid')).toBe('true')
    await field.fill('someone.new@example.com')
    await inviting.getByRole('alert').waitFor({ state: 'detached' })
    await inviting.getByRole('button', { name: 'Create and copy link' }).click()
    await untilText(inviting, 'Send this link to someone.new@example.com.')
  })

  test('C86: an invitation says who can use it, for one address and for any; its field has the focus', async () => {
    const page = await enterAsOperator()
    for (const [typed, said] of [
      [
        'Bound@Example.com',
        /Send this link to bound@example\.com\. Only this address can sign up with it\. .* It works once, until /,
      ],
      ['', /Send this link to the person you invite\. Whoever has it can sign up\. .* It works once, until /],
    ] as const) {
      await page.getByRole('button', { name: 'Invite someone…' }).click()
      const inviting = dialog(page, 'Invite someone')
      await expect.poll(() => page.evaluate('document.activeElement.type')).toBe('email')
      await page.keyboard.type(typed)
      await page.keyboard.press('Enter')
      await untilText(inviting, said)
      await inviting.getByRole('button', { name: 'Done' }).click()
      await inviting.waitFor({ state: 'detached' })
    }
  })

  test('C86: if the browser does not copy a new link, the link is there, and nothing says that it was copied', async () => {
    const page = await enterAsOperator()
    await page.evaluate('navigator.clipboard.writeText = () => Promise.reject(); document.execCommand = () => false')
    await page.getByRole('button', { name: 'Invite someone…' }).click()
    const inviting = dialog(page, 'Invite someone')
    await inviting.getByRole('button', { name: 'Create and copy link' }).click()
    await untilText(
      inviting,
      /^Invite someone Send this link to the person you invite\. .*\/dashboard\/link#[\w-]{43} .* Copy link$/,
    )
  })

  test('C86: if the address got an account since, the invitation says to sign in, not to use another address', async () => {
    const email = 'twice.invited@example.com'
    const invite = async (): Promise<string> => (await server.operator('POST', '/invitations', { json: { email } })).json().url
    const links = [await invite(), await invite(), await invite()]
    const opened = await Promise.all(
      [0, 1].map(async (place) => {
        const page = await (await newContext()).newPage()
        await page.goto(links[place] ?? '')
        await page.getByLabel('Password', { exact: true }).fill('correct horse battery')
        return page
      }),
    )
    const advice = /twice\.invited@example\.com already has an account.* Sign in\. .* ask the operator for a sign-in link\./
    for (const [place, page] of opened.entries()) {
      await page.getByRole('button', { name: 'Continue' }).click()
      await heading(page, place === 0 ? 'Overview' : 'You already have an account').waitFor()
      if (place > 0) await untilText(page.getByRole('main'), advice)
    }
    const late = await (await newContext()).newPage()
    await late.goto(links[2] ?? '')
    await heading(late, 'You already have an account').waitFor()
    expect(await textOf(late.getByRole('main'))).toMatch(advice)
    await late.getByRole('link', { name: 'Sign in' }).click()
    await heading(late, 'Sign in').waitFor()
  })
})
