import { beforeAll, describe, expect, test } from 'vitest'
import { openApp } from '../support/app.ts'
import { type Answer, send, sendRaw } from '../support/server.ts'

let http: { port: number }
let https: { port: number }
beforeAll(async () => {
  ;[http, https] = await Promise.all([openApp(), openApp({ PUBLIC_URL: 'https://yard.example' })])
})

const PATHS = [
  '/healthz',
  '/v1/api-key',
  '/v1/nodes',
  '/operator/v1/accounts',
  '/docs',
  '/docs/quickstart.md',
  '/openapi.json',
].concat(['/dashboard/', '/nothing', '/%', '/n/node_a/getinfo', '/dashboard/api/nothing'])
const get = ({ port }: { port: number }, path: string): Promise<Answer> => send(port, 'GET', path)

describe('security 19: headers for browsers', () => {
  test.each(PATHS)('security 19: %s has nosniff', async (path) => {
    expect((await get(http, path)).headers['x-content-type-options']).toBe('nosniff')
  })

  test('security 19: the response to invalid HTTP has nosniff too', async () => {
    expect(await sendRaw(http.port, 'hello\r\n\r\n')).toMatch(/^x-content-type-options: nosniff\r$/im)
  })

  test('security 19: HSTS is sent with an https PUBLIC_URL, and only then', async () => {
    for (const path of PATHS.filter((one) => one !== '/%')) {
      expect([path, (await get(https, path)).headers['strict-transport-security']]).toEqual([path, 'max-age=31536000'])
      expect([path, (await get(http, path)).headers['strict-transport-security']]).toEqual([path, undefined])
    }
  })

  test('security 19: the documentation loads nothing from elsewhere, has nothing inline, cannot be framed, and sends no referrer', async () => {
    const { headers } = await get(http, '/docs')
    const policy = String(headers['content-security-policy'])
    expect(policy).toMatch(/^default-src 'none'; script-src 'self'; style-src 'self'; /)
    expect(policy).toContain("frame-ancestors 'none'")
    expect(policy).not.toMatch(/https?:|unsafe/)
    expect(headers).toMatchObject({ 'referrer-policy': 'no-referrer', 'x-frame-options': 'DENY' })
  })
})

test('security 20: no API response may be cached', async () => {
  const calls: [string, string][] = [
    ['GET', '/v1/api-key'],
    ['POST', '/v1/nodes'],
    ['GET', '/v1/nodes/x'],
    ['POST', '/v1/gateway/payments'],
    ['POST', '/operator/v1/accounts/x/keys'],
    ['POST', '/operator/v1/accounts/x/sign-in-link'],
    ['POST', '/operator/v1/invitations'],
    ['POST', '/dashboard/api/nodes'],
    ['POST', '/dashboard/api/auth/sign-in/email'],
    ['POST', '/dashboard/api/link/inspect'],
    ['POST', '/internal/settled/x'],
  ]
  for (const [method, path] of calls) {
    const { status, headers } = await send(http.port, method, path)
    expect([path, status, headers['cache-control']]).toEqual([path, 401, 'no-store'])
  }
})
