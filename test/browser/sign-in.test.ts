import { beforeAll, expect, test } from 'vitest'
import type { Server } from '../../server/test/harness.ts'
import { dialog, go, heading, inBrowser, newContext, newPerson, startDashboard, textOf, untilText } from './harness.ts'

const PASSWORD = 'correct horse battery'

inBrowser('signing in to the dashboard', () => {
  let server: Server
  beforeAll(async () => {
    server = await startDashboard()
  }, 120_000)

  test('the first account is claimed by its link, once; the link is in no address and no history', async () => {
    const { accountId, claimUrl } = server.firstRun
    const page = await (await newContext()).newPage()
    await page.goto(claimUrl)
    await heading(page, 'Claim your account').waitFor()
    expect([new URL(page.url()).pathname, new URL(page.url()).hash]).toEqual(['/dashboard/link', ''])
    await page.getByLabel('E-mail').fill('first@example.com')
    await page.getByLabel('Password', { exact: true }).fill(PASSWORD)
    await page.getByRole('button', { name: 'Continue' }).click()
    await heading(page, 'Overview').waitFor()
    await go(page, 'Settings')
    await untilText(page.getByRole('region', { name: 'You' }), accountId)

    const other = await (await newContext()).newPage()
    await other.goto(claimUrl)
    await heading(other, 'This link cannot be used').waitFor()
  })

  test('a wrong password says what to do and not which of the two was wrong; the right one signs in; out is out', async () => {
    const { email } = await newPerson(server)
    const page = await (await newContext()).newPage()
    await page.goto(`${server.url}/dashboard/`)
    await heading(page, 'Sign in').waitFor()
    const say = async (address: string, password: string): Promise<string> => {
      await page.getByLabel('E-mail').fill(address)
      await page.getByLabel('Password', { exact: true }).fill(password)
      await page.getByRole('button', { name: 'Sign in', exact: true }).click()
      await page.getByRole('alert').getByText('You are not signed in.').waitFor()
      const text = await textOf(page.getByRole('alert'))
      return text.replace(/Request id \S+/, 'Request id')
    }
    const wrong = await say(email, 'not the password')
    expect(wrong).toMatch(/Check both and try again/)
    expect(wrong).toMatch(/Request id/)
    expect(await say('nobody@example.com', PASSWORD)).toBe(wrong)

    await page.getByLabel('E-mail').fill(email)
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
  })

  test('a session that is over leads to sign-in with the next action, and back to where one wanted to go', async () => {
    const person = await newPerson(server)
    const { page, email } = person
    await person.open('nodes')
    await page.getByText('You have no node yet.').waitFor()
    await server.sql()`DELETE FROM people_sessions WHERE person_id = ${person.userId}`
    await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Developers' }).click()
    await heading(page, 'Sign in').waitFor()
    expect(await page.getByText('You have no node yet.').count()).toBe(0)
    await page.getByLabel('E-mail').fill(email)
    await page.getByLabel('Password', { exact: true }).fill(PASSWORD)
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
    await heading(page, 'Developers').waitFor()
    await page.getByText('You have no API key yet.').waitFor()
  })

  test('nobody is sent to another site after signing in', async () => {
    const { email } = await newPerson(server)
    const page = await (await newContext()).newPage()
    for (const next of ['https://example.com/', '//example.com/', '/dashboard//example.com', '/dashboard/\\example.com']) {
      await page.context().clearCookies()
      await page.goto(`${server.url}/dashboard/sign-in?${new URLSearchParams({ next })}`)
      await page.getByLabel('E-mail').fill(email)
      await page.getByLabel('Password', { exact: true }).fill(PASSWORD)
      await page.getByRole('button', { name: 'Sign in', exact: true }).click()
      await heading(page, /Overview|Page not found/).waitFor()
      expect(new URL(page.url()).host).toBe(new URL(server.url).host)
    }
  })

  test('a passkey is added, signs in without a password, and is removed', async () => {
    const person = await newPerson(server)
    const { page, context } = person
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
    await person.open('settings')
    await page.getByLabel('Name of the new passkey').fill('Laptop')
    await page.getByRole('button', { name: 'Add a passkey' }).click()
    const list = page.getByRole('list', { name: 'Passkeys' })
    await untilText(list, /Laptop added just now/)

    await page.getByRole('button', { name: 'Sign out', exact: true }).click()
    await heading(page, 'Sign in').waitFor()
    await page.getByRole('button', { name: 'Sign in with a passkey' }).click()
    await heading(page, /Settings|Overview/).waitFor()
    await go(page, 'Settings')
    await untilText(page.getByRole('region', { name: 'You' }), person.email)

    await page.getByRole('button', { name: 'Remove Laptop' }).click()
    await dialog(page, 'Remove Laptop?').getByRole('button', { name: 'Remove passkey' }).click()
    await list.waitFor({ state: 'detached' })
  })

  test('a changed password ends the sessions elsewhere, and out everywhere ends this one', async () => {
    const person = await newPerson(server)
    const { page } = person
    const elsewhere = await (await newContext()).newPage()
    await elsewhere.goto(`${server.url}/dashboard/sign-in`)
    await elsewhere.getByLabel('E-mail').fill(person.email)
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
    // By itself: whoever sits there does not have to click first.
    await heading(elsewhere, 'Sign in').waitFor()

    await page.getByRole('button', { name: 'Sign out everywhere…' }).click()
    await dialog(page, 'Sign out everywhere?').getByRole('button', { name: 'Sign out everywhere' }).click()
    await heading(page, 'Sign in').waitFor()
  })
})
