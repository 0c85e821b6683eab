import { type Answer, type Request, type Server, send } from './server.ts'

let browsers = 0

export type Cookie = { name: string; value: string; attributes: string[] }

/** What a browser does for a page: keeps cookies, sends them back and adds the page's origin. */
export class Browser {
  readonly cookies = new Map<string, string>()
  server: Server
  origin: string
  /** The address that a proxy reports (TRUST_PROXY=1). Each browser has its own, so that they do not share a rate limit. */
  address = `10.1.${browsers >> 8}.${browsers++ & 255}`

  constructor(server: Server) {
    this.server = server
    this.origin = new URL(server.url).origin
  }

  get cookie(): string {
    return [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
  }

  get(path: string, options: Request = {}): Promise<Answer> {
    return this.#send('GET', path, options)
  }

  /** Sends JSON and the page's origin, as a script of the page does. `headers` can replace the origin; undefined removes it. */
  post(path: string, json: unknown = {}, headers: Record<string, string | undefined> = {}): Promise<Answer> {
    const all = { origin: this.origin, ...headers }
    const kept = Object.fromEntries(Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== undefined))
    return this.#send('POST', path, { json, headers: kept })
  }

  async signUp(email: string, password = PASSWORD): Promise<Answer> {
    return this.post('/auth/sign-up/email', { email, password })
  }

  async signIn(email: string, password = PASSWORD, headers = {}): Promise<Answer> {
    return this.post('/auth/sign-in/email', { email, password }, headers)
  }

  async me(): Promise<any> {
    return (await this.get('/me')).json()
  }

  async #send(method: string, path: string, { headers, ...options }: Request): Promise<Answer> {
    const cookie = this.cookie ? { cookie: this.cookie } : {}
    const answer = await send(this.server.port, method, `/dashboard/api${path}`, {
      ...options,
      headers: { 'x-forwarded-for': this.address, ...cookie, ...headers },
    })
    for (const { name, value, attributes } of cookiesOf(answer)) {
      if (attributes.includes('Max-Age=0')) this.cookies.delete(name)
      else this.cookies.set(name, value)
    }
    return answer
  }
}

export const PASSWORD = 'correct horse battery'

export function cookiesOf({ headers }: Answer): Cookie[] {
  return (headers['set-cookie'] ?? []).map((line) => {
    const [pair = '', ...attributes] = line.split('; ')
    const [name = '', ...value] = pair.split('=')
    return { name, value: value.join('='), attributes }
  })
}

let people = 0
export const newEmail = (): string => `person-${people++}@example.com`
