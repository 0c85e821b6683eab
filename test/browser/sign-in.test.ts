import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import type { Page } from 'playwright-core'
import { beforeAll, expect, test } from 'vitest'
import type { Server } from '../../server/test/support/server.ts'
import { dialog, go, heading, inBrowser, newContext, newPerson, startDashboard, textOf, untilText } from './harness.ts'

const PASSWORD = 'correct horse battery'

inBrowser('signing in to the dashboard', () => {
  let server: Server
  beforeAll(async () => {
    // The default address, 127.0.0.1.
    server = await startDashboard({ PUBLIC_URL: '' }, 'embedded')
  })
  const signIn = async (page: Page, email: string, password = PASSWORD): Promise<void> => {
    await page.getByLabel('Email').fill(email)
    await page.getByLabel('Password', { exact: true }).fill(password)
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  }

  test('the first account is claimed once with its link, which stays out of the URL and the history', async () => {
    const { accountId, claimUrl } = server.firstRun
    const page = await (await newContext()).newPage()
    const hint = page.getByText('Its first account has no owner yet')
    await page.goto(`${server.url}/dashboard/sign-in`)
    await hint.waitFor()
    expect(await textOf(page.getByRole('main'))).toContain('If you create an account instead, you get a different one.')
    await page.goto(`${server.url}/dashboard/sign-up`)
    await page.getByText('This creates another account, not the first one').waitFor()
    await page.goto(claimUrl)
    await heading(page, 'Claim your account').waitFor()
    expect([new URL(page.url()).pathname, new URL(page.url()).hash]).toEqual(['/dashboard/link', ''])
    await page.getByLabel('Email').fill('first@example.com')
    await page.getByLabel('Password', { exact: true }).fill(PASSWORD)
    await page.getByRole('button', { name: 'Continue' }).click()
    await heading(page, 'Overview').waitFor()
    await go(page, 'Settings')
    await untilText(page.getByRole('region', { name: 'You' }), accountId)

    const other = await (await newContext()).newPage()
    await other.goto(claimUrl)
    await heading(other, 'This link cannot be used').waitFor()
    await other.goto(`${server.url}/dashboard/sign-in`)
    await heading(other, 'Sign in').waitFor()
    expect(await other.getByText('has no owner yet').count()).toBe(0)
  })

  test('dashboard: the first field has the focus; an existing email address is reported with a next step', async () => {
    const { email } = await newPerson(server)
    const page = await (await newContext()).newPage()
    for (const gate of ['sign-in', 'sign-up']) {
      await page.goto(`${server.url}/dashboard/${gate}`)
      await heading(page, /Sign in|Create an account/).waitFor()
      await expect.poll(() => page.evaluate('document.activeElement.name')).toBe('email')
    }
    await page.keyboard.type(email)
    await page.getByLabel('Password', { exact: true }).fill(PASSWORD)
    await page.getByRole('button', { name: 'Create account' }).click()
    const alert = page.getByRole('alert')
    await untilText(alert, 'An account with this email address already exists.')
    // The refusal was about the earlier input, so it disappears when the person types.
    await page.getByLabel('Email').pressSequentially('x')
    await alert.waitFor({ state: 'detached' })
    await page.keyboard.press('Backspace')
    await page.getByRole('button', { name: 'Create account' }).click()
    await untilText(alert, 'An account with this email address already exists.')
    expect(await textOf(alert)).not.toMatch(/Correct what you entered/)
    await alert.getByRole('link', { name: 'Sign in' }).click()
    await heading(page, 'Sign in').waitFor()
  })

  test('dashboard: whoever opened the dashboard at another address is told the right one, and not to check the password', async () => {
    const { email } = await newPerson(server)
    const page = await (await newContext()).newPage()
    // As behind a proxy with another address.
    await page.route('**/auth/sign-*/email', async (route) => {
      const headers = { ...route.request().headers(), origin: 'http://proxy.example' }
      await route.fulfill({ response: await route.fetch({ headers }) })
    })
    for (const [gate, button] of [
      ['sign-in', 'Sign in'],
      ['sign-up', 'Create account'],
    ] as const) {
      await page.goto(`${server.url}/dashboard/${gate}`)
      await page.getByLabel('Email').fill(email)
      await page.getByLabel('Password', { exact: true }).fill(PASSWORD)
      await page.getByRole('button', { name: button, exact: true }).click()
      const alert = page.getByRole('alert')
      await untilText(alert, /This request is only accepted from http:.* Open the dashboard at that address and try again\./)
      expect(await textOf(alert)).not.toMatch(/[Pp]assword|Sign in again/)
    }
  })

  test('dashboard: until the first response the page shows that it is loading', async () => {
    const page = await (await newContext()).newPage()
    let answer = (): void => undefined
    const wait = new Promise<void>((resolve) => {
      answer = resolve
    })
    await page.route('**/dashboard/api/me', async (route) => {
      await wait
      await route.continue()
    })
    await page.goto(`${server.url}/dashboard/`, { waitUntil: 'commit' })
    const starting = page.getByRole('status', { name: 'Loading Boltyard' })
    await starting.waitFor()
    await starting.locator('img').waitFor()
    answer()
    await heading(page, 'Sign in').waitFor()
    expect(await starting.count()).toBe(0)
  })

  test('dashboard: on a local install, a forgotten password shows a command that works', async () => {
    const { email } = await newPerson(server)
    // Directly on the machine, not through a proxy.
    const page = await (await newContext({ extraHTTPHeaders: {} })).newPage()
    await page.goto(`${server.url}/dashboard/sign-in`)
    expect(await page.getByRole('link', { name: 'Sign in as the operator' }).getAttribute('href')).toBe('/dashboard/operator')
    await page.getByLabel('Email').fill(email)
    await page.getByText('Forgot your password?').click()
    const command = await page.getByRole('region', { name: 'Create a sign-in link' }).locator('code').textContent()
    expect(command).not.toContain(server.operatorToken)
    const { stdout } = await promisify(execFile)('sh', ['-c', command ?? ''])
    const { url } = JSON.parse(stdout)
    await page.goto(url)
    await heading(page, 'Sign in with your link').waitFor()
    await page.getByText(`For ${email}.`).waitFor()

    const elsewhere = await (await newContext()).newPage()
    await elsewhere.goto(`${server.url}/dashboard/sign-in`)
    await elsewhere.getByText('Ask the operator for a sign-in link.').waitFor()
    expect(await elsewhere.getByRole('link', { name: 'Sign in as the operator' }).count()).toBe(0)
  })

  test('dashboard: a sign-in link leads to a new password, which can be declined', async () => {
    const { email } = await newPerson(server)
    const follow = async (): Promise<Page> => {
      const { url } = (await server.operator('POST', '/sign-in-links', { json: { email } })).json()
      const page = await (await newContext()).newPage()
      await page.goto(url)
      await heading(page, 'Sign in with your link').waitFor()
      return page
    }
    const declined = await follow()
    const box = declined.getByRole('checkbox', { name: 'Set a new password' })
    expect(await box.isChecked()).toBe(true)
    await box.uncheck()
    expect(await declined.getByLabel('New password', { exact: true }).count()).toBe(0)
    await declined.getByRole('button', { name: 'Sign in', exact: true }).click()
    await heading(declined, 'Overview').waitFor()

    const led = await follow()
    await expect.poll(() => led.evaluate('document.activeElement.name')).toBe('new-password')
    await led.keyboard.type('another horse battery')
    await led.keyboard.press('Enter')
    await heading(led, 'Overview').waitFor()
    const later = await (await newContext()).newPage()
    await later.goto(`${server.url}/dashboard/sign-in`)
    await signIn(later, email, 'another horse battery')
    await heading(later, 'Overview').waitFor()
  })

  test('a wrong password says what to do but not which of the two was wrong; the right one signs in; sign-out works', async () => {
    const { email } = await newPerson(server)
    const page = await (await newContext()).newPage()
    await page.goto(`${server.url}/dashboard/`)
    await heading(page, 'Sign in').waitFor()
    const say = async (address: string, password: string): Promise<string> => {
      await page.getByLabel('Email').fill(address)
      await page.getByLabel('Password', { exact: true }).fill(password)
      const answer = page.waitForResponse('**/sign-in/email')
      await page.getByRole('button', { name: 'Sign in', exact: true }).click()
      // Wait for this attempt's request id, because the alert of an earlier attempt may still be visible.
      await untilText(page.getByRole('alert'), (await answer).headers()['x-request-id'] ?? '(no id)')
      const text = await textOf(page.getByRole('alert'))
      expect(text).toContain('You are not signed in.')
      return text.replace(/Request id \S+/, 'Request id')
    }
    const wrong = await say(email, 'not the password')
    expect(wrong).toMatch(/Check your email address and password, then try again/)
    expect(wrong).toMatch(/Request id/)
    expect(await say('nobody@example.com', PASSWORD)).toBe(wrong)

    await page.getByLabel('Email').fill(email)
    await page.getByLabel('Password', { exact: true }).fill(PASSWORD)
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
    await heading(page, 'Overview').waitFor()
    const kept = await page.evaluate<string>(
      'JSON.stringify([Object.entries(localStorage), Object.entries(sessionStorage), document.cookie])',
    )
    expect(kept).not.toMatch(/session|token|horse/i)

    await go(page, 'Nodes')
    await page.getByRole('button', { name: 'Sign out' }).click()
    await heading(page, 'Sign in').waitFor()
    await page.goBack()
    await heading(page, 'Sign in').waitFor()
    expect(await page.getByRole('navigation').count()).toBe(0)
    expect(await page.getByText('You were signed out.').count()).toBe(0)
  })

  test('an expired session leads to sign-in with the next action, and back to the wanted page', async () => {
    const person = await newPerson(server)
    const { page, email } = person
    await person.open('nodes')
    await page.getByText('You have no nodes yet.').waitFor()
    await server.sql()`DELETE FROM people_sessions WHERE person_id = ${person.userId}`
    await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Developers' }).click()
    await heading(page, 'Sign in').waitFor()
    expect(await page.getByText('You have no nodes yet.').count()).toBe(0)
    await page.getByText('You were signed out.').waitFor()
    await page.getByText('you continue where you left off').waitFor()
    await signIn(page, email)
    await heading(page, 'Developers').waitFor()
    await page.getByText('You have no API keys yet.').waitFor()
    // The same happens if the session ended while no page was open.
    await server.sql()`DELETE FROM people_sessions WHERE person_id = ${person.userId}`
    await page.goto(`${server.url}/dashboard/nodes`)
    await page.getByText('You were signed out.').waitFor()
    expect(new URL(page.url()).searchParams.get('next')).toBe('/dashboard/nodes')
    // After a reload, nothing of the previous page is in memory.
    await page.reload()
    await signIn(page, email)
    await page.getByText('You have no nodes yet.').waitFor()
    expect(new URL(page.url()).pathname).toBe('/dashboard/nodes')
  })

  test.each(['before the page knows that the session is over', 'when the page knows that the session is over'])(
    'dashboard: a person who signs out and opens another page %s is not told that the session ended',
    async (when) => {
      const person = await newPerson(server)
      const { page } = person
      await person.open('settings')
      let [held, release] = [0, (): void => undefined]
      const released = new Promise<void>((resolve) => {
        release = resolve
      })
      const hold = (path: string): Promise<unknown> =>
        page.route(path, async (route) => {
          const response = await route.fetch()
          held++
          await released
          await route.fulfill({ response })
        })
      await hold('**/auth/sign-out')
      if (when.startsWith('before')) await hold('**/dashboard/api/me')
      // The page sends a request on its own as soon as its event stream has ended.
      const refused = page.waitForResponse((response) => response.status() === 401)
      const known = when.startsWith('when') && page.waitForResponse('**/dashboard/api/me')
      await page.getByRole('button', { name: 'Sign out', exact: true }).click()
      await expect.poll(() => held).toBeGreaterThan(0)
      await Promise.all([refused, known])
      await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Credit' }).click()
      if (known) await heading(page, 'Sign in').waitFor()
      release()
      await heading(page, 'Sign in').waitFor()
      expect(new URL(page.url()).search).toBe('')
      expect(await textOf(page.getByRole('main'))).not.toContain('session')
    },
  )

  test('security 29: signing in always leads to the dashboard, whatever the URL says', async () => {
    const { email } = await newPerson(server)
    const page = await (await newContext()).newPage()
    const places = [
      'https://example.com/',
      '//example.com/',
      '/dashboard//example.com',
      '/dashboard/\\example.com',
      '/dashboard/../n/node_x',
      '/dashboard/%2e%2e/n/node_x',
      '/dashboard/..\\n/node_x',
    ]
    for (const next of places) {
      await page.context().clearCookies()
      await page.goto(`${server.url}/dashboard/sign-in?${new URLSearchParams({ next })}`)
      await signIn(page, email)
      await heading(page, /Overview|Page not found/).waitFor()
      const { origin, pathname } = new URL(page.url())
      expect([next, origin, pathname]).toEqual([next, server.url, expect.stringMatching(/^\/dashboard\//)])
    }
  })

  test('C44: on a default install a passkey is added at localhost, signs in even while password sign-in is paused, and no longer once it is removed', async () => {
    const person = await newPerson(server)
    const { page, context } = person
    const named = server.url.replace('127.0.0.1', 'localhost')
    await person.open('settings')
    await page.getByRole('link', { name: `${named}/dashboard/settings` }).click()
    await heading(page, 'Sign in').waitFor()
    expect(new URL(page.url()).origin).toBe(named)
    await signIn(page, person.email)
    await heading(page, 'Settings').waitFor()
    const devices = await context.newCDPSession(page)
    await devices.send('WebAuthn.enable')
    await devices.send('WebAuthn.addVirtualAuthenticator', {
      options: {
        protocol: 'ctap2',
        transport: 'internal',
        hasResidentKey: true,
        hasUserVerification: true,
        isUserVerified: true,
        automaticPresenceSimulation: true,
      },
    })
    await page.getByLabel('Name of the new passkey').fill('Laptop')
    await page.getByRole('button', { name: 'Add a passkey…' }).click()
    const add = dialog(page, 'Add a passkey')
    await add.getByLabel('Your password').fill(PASSWORD)
    await add.getByRole('button', { name: 'Add passkey' }).click()
    const list = page.getByRole('list', { name: 'Passkeys' })
    await untilText(list, /Laptop added just now/)

    await page.getByRole('button', { name: 'Sign out', exact: true }).click()
    await heading(page, 'Sign in').waitFor()
    await signIn(page, person.email, 'not the password')
    await page.getByRole('alert').getByText('You are not signed in.').waitFor()
    await server.sql()`UPDATE sign_in_failures SET paused_until = now() + interval '1 hour'`
    await signIn(page, person.email)
    await untilText(page.getByRole('alert'), /Too many .* Try again in \d+ seconds/)
    await page.getByRole('button', { name: 'Sign in with a passkey' }).click()
    await heading(page, /Settings|Overview/).waitFor()
    await go(page, 'Settings')
    await untilText(page.getByRole('region', { name: 'You' }), person.email)

    await page.getByRole('button', { name: 'Remove Laptop' }).click()
    await dialog(page, 'Remove Laptop?').getByRole('button', { name: 'Remove passkey' }).click()
    await list.waitFor({ state: 'detached' })

    await page.getByRole('button', { name: 'Sign out', exact: true }).click()
    await heading(page, 'Sign in').waitFor()
    await page.getByRole('button', { name: 'Sign in with a passkey' }).click()
    await untilText(page.getByRole('alert'), /This passkey was not accepted\. .* sign in with your password\.\s*Request id/)
  })

  test('a password change ends other sessions, and signing out everywhere ends this one', async () => {
    const person = await newPerson(server)
    const { page } = person
    const elsewhere = await (await newContext()).newPage()
    await elsewhere.goto(`${server.url}/dashboard/sign-in`)
    await elsewhere.getByLabel('Email').fill(person.email)
    await elsewhere.getByLabel('Password', { exact: true }).fill(PASSWORD)
    await elsewhere.getByRole('button', { name: 'Sign in', exact: true }).click()
    await heading(elsewhere, 'Overview').waitFor()

    await person.open('settings')
    await page.getByLabel('Current password').fill('not the password')
    await page.getByLabel('New password').fill('another correct horse')
    await page.getByRole('button', { name: 'Change password' }).click()
    await page.getByRole('alert').getByText('The password was not changed.').waitFor()
    await page.getByLabel('Current password').fill(PASSWORD)
    await page.getByRole('button', { name: 'Change password' }).click()
    await page.getByText('Password changed.').waitFor()
    // The other browser goes to the sign-in page without a click.
    await heading(elsewhere, 'Sign in').waitFor()

    await page.getByRole('button', { name: 'Sign out everywhere…' }).click()
    await dialog(page, 'Sign out everywhere?').getByRole('button', { name: 'Sign out everywhere' }).click()
    await heading(page, 'Sign in').waitFor()
  })
})
