import type { Locator } from 'playwright-core'
import { beforeAll, expect, test } from 'vitest'
import { Authenticator } from '../../server/test/accounts/authenticator.ts'
import type { Server } from '../../server/test/support/server.ts'
import { closeSecrets, dialog, heading, inBrowser, newPerson, readSecrets, startDashboard, textOf, untilText } from './harness.ts'

const PASSWORD = 'correct horse battery'

type Placed = { getBoundingClientRect(): { y: number } }

inBrowser('the settings page', () => {
  let server: Server
  beforeAll(async () => {
    server = await startDashboard()
  })

  test('dashboard: the name of a setting stands beside its switch, not between the switch and the hint below it', async () => {
    const { page, open } = await newPerson(server)
    await open('settings')
    const display = page.getByRole('region', { name: 'Display' })
    const middleOf = async (element: Locator): Promise<number> => {
      const { y, height } = (await element.boundingBox()) ?? { y: 0, height: 0 }
      return y + height / 2
    }
    for (const [name, control] of [
      ['Theme', 'Theme'],
      ['Amounts', 'Unit of amounts'],
    ] as const) {
      const beside = await middleOf(display.getByRole('radiogroup', { name: control }))
      expect(Math.abs((await middleOf(display.locator('dt', { hasText: name }))) - beside)).toBeLessThan(4)
    }
  })

  test('C87: two-factor sign-in is set up with a key and a code, is asked for after the password, and is turned off with a recovery code', async () => {
    const person = await newPerson(server, { locale: 'de-DE' })
    const { page, email } = person
    await person.open('settings')
    const section = page.getByRole('region', { name: 'Two-factor sign-in' })
    await section.getByRole('button', { name: 'Set up…' }).click()
    const setUp = dialog(page, 'Set up two-factor sign-in')
    await setUp.getByLabel('Your password').fill(PASSWORD)
    await setUp.getByRole('button', { name: 'Continue' }).click()
    await setUp.getByRole('img', { name: 'QR code for your authenticator app' }).waitFor()
    const app = new Authenticator((await textOf(setUp.locator('.secret-key'))).replaceAll(' ', ''))
    const code = 'Code from your authenticator app'
    await setUp.getByLabel(code).fill('000000')
    await setUp.getByRole('button', { name: 'Turn on' }).click()
    await untilText(setUp.getByRole('alert'), 'The code is incorrect')
    await setUp.getByLabel(code).fill(app.code())
    await setUp.getByRole('button', { name: 'Turn on' }).click()
    const stored = dialog(page, 'Store your recovery codes')
    const codes = (await readSecrets(stored, ['Recovery codes']))['Recovery codes']?.split(' ') ?? []
    expect(codes).toHaveLength(10)
    await closeSecrets(stored)
    await untilText(section, '10 of 10 recovery codes left')
    // How amounts and dates are shown is a setting of the browser.
    const display = page.getByRole('region', { name: 'Display' })
    await display.getByText('BTC', { exact: true }).click()
    await untilText(display, '0.00123456 BTC')
    await untilText(display, /\d{2}\.\d{2}\.\d{4}, \d{2}:\d{2}/)

    await page.getByRole('button', { name: 'Sign out', exact: true }).click()
    await heading(page, 'Sign in').waitFor()
    await page.getByLabel('Email').fill(email)
    await page.getByLabel('Password', { exact: true }).fill(PASSWORD)
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
    await page.getByLabel(code).fill('000000')
    await expect.poll(() => page.evaluate('document.activeElement.name')).toBe('code')
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
    await untilText(page.getByRole('alert'), 'The code is incorrect')
    await page.getByLabel(code).fill(app.code(1))
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
    await heading(page, 'Overview').waitFor()

    // A passkey that checks its user needs no code.
    const devices = await person.context.newCDPSession(page)
    await devices.send('WebAuthn.enable')
    const options = { protocol: 'ctap2', transport: 'internal', hasResidentKey: true, automaticPresenceSimulation: true } as const
    await devices.send('WebAuthn.addVirtualAuthenticator', {
      options: { ...options, hasUserVerification: true, isUserVerified: true },
    })
    await person.open('settings')
    await page.getByLabel('Name of the new passkey').fill('Phone')
    await page.getByRole('button', { name: 'Add a passkey…' }).click()
    const add = dialog(page, 'Add a passkey')
    await add.getByLabel('Your password').fill(PASSWORD)
    await add.getByRole('button', { name: 'Use a recovery code instead' }).click()
    await add.getByLabel('Recovery code').fill(codes[1] ?? '')
    await add.getByRole('button', { name: 'Add passkey' }).click()
    await untilText(page.getByRole('list', { name: 'Passkeys' }), 'Phone')
    await page.getByRole('button', { name: 'Sign out', exact: true }).click()
    await heading(page, 'Sign in').waitFor()
    await page.getByRole('button', { name: 'Sign in with a passkey' }).click()
    await heading(page, 'Overview').waitFor()

    await person.open('settings')
    await untilText(display, '0.00123456 BTC')
    await section.getByRole('button', { name: 'Turn off…' }).click()
    const off = dialog(page, 'Turn off two-factor sign-in?')
    await off.getByRole('button', { name: 'Use a recovery code instead' }).click()
    await off.getByLabel('Recovery code').fill(codes[0] ?? '')
    await off.getByRole('button', { name: 'Turn off' }).click()
    await section.getByRole('button', { name: 'Set up…' }).waitFor()
  })

  test('dashboard: no button moves away from under the pointer, in whatever order the parts arrive', async () => {
    const person = await newPerson(server)
    const { page } = person
    const held: (() => void)[] = []
    await page.route(/\/api\/(security|account\/deletion|auth\/(list-sessions|passkey\/list-user-passkeys))$/, async (route) => {
      await new Promise<void>((resolve) => held.push(resolve))
      await route.continue()
    })
    await person.open('settings')
    await expect.poll(() => held.length).toBe(4)
    const places = () =>
      page
        .getByRole('main')
        .locator('h2, a, button')
        .evaluateAll((all) =>
          all.map((one) => `${one.textContent} ${Math.round((one as unknown as Placed).getBoundingClientRect().y)}`),
        )
    const seen = [await places()]
    for (const release of held.toReversed()) {
      release()
      await page.waitForTimeout(200)
      seen.push(await places())
    }
    await page.getByRole('button', { name: 'Delete account…' }).waitFor()
    const last = await places()
    for (const before of seen) expect(last).toEqual(expect.arrayContaining(before))
  })

  test('C88: the email address changes, another session is signed out, and the account is deleted', async () => {
    const person = await newPerson(server)
    const { page, email } = person
    await server.send('POST', '/dashboard/api/auth/sign-in/email', {
      json: { email, password: PASSWORD },
      headers: { origin: server.url, 'user-agent': 'Mozilla/5.0 (X11; Linux x86_64; rv:131.0) Gecko/20100101 Firefox/131.0' },
    })
    await person.open('settings')
    const sessions = page.getByRole('list', { name: 'Sessions' })
    await untilText(sessions, /This one.*Firefox on Linux/)
    await sessions.getByRole('button', { name: 'Sign out Firefox on Linux' }).click()
    await expect.poll(() => sessions.getByRole('listitem').count()).toBe(1)

    await page.getByRole('button', { name: 'Change email…' }).click()
    const change = dialog(page, 'Change your email address')
    await change.getByLabel('New email').fill(`new-${email}`)
    await change.getByLabel('Your password').fill(PASSWORD)
    await change.getByRole('button', { name: 'Change email' }).click()
    await untilText(page.getByRole('region', { name: 'You' }), `new-${email}`)

    await page.getByRole('button', { name: 'Delete account…' }).click()
    const remove = dialog(page, 'Delete this account?')
    await untilText(remove, /kept for accounting.*credit of .* sat can no longer be used/)
    expect(await remove.getByRole('button', { name: 'Delete account' }).isDisabled()).toBe(true)
    await remove.getByLabel('Type the account’s name').fill(email.split('@')[0] ?? '')
    await remove.getByLabel('Your password').fill(PASSWORD)
    await remove.getByRole('button', { name: 'Delete account' }).click()
    await heading(page, 'Sign in').waitFor()
    const [left] = await server.sql()`SELECT 1 FROM people WHERE id = ${person.userId}`
    expect(left).toBeUndefined()
  })
})
