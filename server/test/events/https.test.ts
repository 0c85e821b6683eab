import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer, type Server as HttpsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { TLSSocket, TlsOptions } from 'node:tls'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { AddressGuard } from '../../src/events/webhooks/address-guard.ts'
import { sendOnce } from '../../src/events/webhooks/sender.ts'
import type { Owner } from '../support/nodes.ts'
import { PROCESS, startServer, temporaryDirectory } from '../support/server.ts'
import { createWebhook, newSubscriber } from './subscriber.ts'

/** Webhooks over TLS, with certificates made here. */

const directory = temporaryDirectory()
const file = (name: string): string => join(directory, name)
const openssl = (...args: string[]): void => void execFileSync('openssl', args, { cwd: directory, stdio: 'pipe' })
const NEW_KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2']

function makeAuthority(name: string): void {
  openssl('req', '-x509', ...NEW_KEY, '-subj', `/CN=${name}`, '-keyout', `${name}.key`, '-out', `${name}.pem`)
}

type Certificate = { key: Buffer; cert: Buffer }
function makeCertificate(authority: string, name: string): Certificate {
  const base = `${authority}-${name}`
  openssl('req', ...NEW_KEY, '-subj', `/CN=${name}`, '-keyout', `${base}.key`, '-out', `${base}.csr`)
  writeFileSync(file(`${base}.ext`), `subjectAltName=DNS:${name}`)
  const signer = ['-CA', `${authority}.pem`, '-CAkey', `${authority}.key`, '-CAcreateserial', '-extfile', `${base}.ext`]
  openssl('x509', '-req', '-in', `${base}.csr`, ...signer, '-days', '2', '-out', `${base}.pem`)
  return { key: readFileSync(file(`${base}.key`)), cert: readFileSync(file(`${base}.pem`)) }
}

class SecureReceiver {
  readonly #server: HttpsServer
  /** The name that each connection asked for; connections that ask for none are not counted. */
  readonly names: string[] = []
  connections = 0
  requests = 0
  port = 0

  constructor(certificate: Certificate) {
    const SNICallback: TlsOptions['SNICallback'] = (name, done) => {
      this.names.push(name)
      done(null)
    }
    this.#server = createServer({ ...certificate, SNICallback }, (_request, response) => {
      this.requests++
      response.end('received')
    })
    this.#server.on('connection', () => this.connections++)
    this.#server.on('tlsClientError', (_error: Error, socket: TLSSocket) => socket.destroy())
    closing.push(() => this.#server.close())
  }

  async listen(host = '127.0.0.1', port = 0): Promise<this> {
    await once(this.#server.listen(port, host), 'listening')
    this.port = (this.#server.address() as AddressInfo).port
    return this
  }
}
const closing: (() => void)[] = []
afterAll(() => {
  for (const close of closing) close()
})

let owner: Owner
beforeAll(async () => {
  for (const authority of ['trusted', 'unknown']) makeAuthority(authority)
  const env = { TRUST_PROXY: '1', NODE_PRICE_SAT_PER_DAY: '0', NODE_EXTRA_CA_CERTS: file('trusted.pem') }
  owner = await newSubscriber(await startServer({ command: PROCESS, env }))
})

type Result = { status: number | null; response: string | null; error: string | null }
async function sendSample({ port }: SecureReceiver, host = 'localhost'): Promise<Result> {
  const { id } = await createWebhook(owner, { url: `https://${host}:${port}/hook` })
  return owner.want<Result>(200, 'POST', `/webhooks/${id}/test`, { json: {} })
}

test('C61: a certificate for the host name from a trusted authority is accepted', async () => {
  const receiver = await new SecureReceiver(makeCertificate('trusted', 'localhost')).listen()
  expect(await sendSample(receiver)).toMatchObject({ status: 200, response: 'received', error: null })
  expect([receiver.names, receiver.requests]).toEqual([['localhost'], 1])
})

test.each([
  ['for another name', 'trusted', 'other.example', 'localhost', 'ERR_TLS_CERT_ALTNAME_INVALID'],
  ['for a name, if the URL has an address', 'trusted', 'localhost', '127.0.0.1', 'ERR_TLS_CERT_ALTNAME_INVALID'],
  ['by an unknown authority', 'unknown', 'localhost', 'localhost', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE'],
])('C61: a certificate %s is refused before anything is sent', async (_what, authority, name, host, code) => {
  const receiver = await new SecureReceiver(makeCertificate(authority, name)).listen()
  expect(await sendSample(receiver, host)).toMatchObject({ status: null, error: `The connection failed (${code}).` })
  expect(receiver.connections).toBeGreaterThan(0)
  expect(receiver.requests).toBe(0)
})

test('C61: the connection goes to the address that was checked, and names the host in the TLS handshake', async () => {
  const certificate = makeCertificate('trusted', 'shop.example')
  const checked = await new SecureReceiver(certificate).listen()
  const other = await new SecureReceiver(certificate).listen('127.0.0.2', checked.port)
  const found = [['127.0.0.1'], ['127.0.0.2']]
  const resolve = async (): Promise<string[]> => found.shift() ?? []
  const guard = new AddressGuard({ allowPrivate: true, allowHttp: false, isOwnPort: () => false, resolve })
  const url = `https://shop.example:${checked.port}/`
  const result = await sendOnce(guard, { url, headers: {}, body: '{}' }, new AbortController().signal)
  // The test process does not trust the authority, but the request fails only after it has connected.
  expect(result.error).toBe('The connection failed (UNABLE_TO_VERIFY_LEAF_SIGNATURE).')
  expect([checked.names, checked.connections, other.connections, found.length]).toEqual([['shop.example'], 1, 0, 1])
})
