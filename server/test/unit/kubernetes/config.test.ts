import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { readConfig } from '../../../src/config.ts'
import { accessOfFile, accessOfPod } from '../../../src/runtimes/kubernetes/access.ts'

const IMAGE = `registry.example:5000/boltyard/sandboxd@sha256:${'a'.repeat(64)}`
const HIDDEN = 'hidden-value'
const VALID: Record<string, string> = {
  NODE_RUNTIME: 'kubernetes',
  DATABASE_URL: 'postgres://h/d',
  MASTER_KEY: Buffer.alloc(32, 7).toString('base64'),
  NODE_VERSIONS: `0.8.0=${IMAGE},0.9.0=${IMAGE}`,
  NODE_CALLBACK_URL: 'http://boltyard:8402',
  KUBERNETES_SERVICE_HOST: '10.0.0.1',
  KUBERNETES_SERVICE_PORT: '6443',
  SANDBOX_HUB: 'hub.boltyard.svc:9730',
  SANDBOX_HUB_NODE_TOKEN: 'n'.repeat(32),
  SANDBOX_HUB_CONTROL_TOKEN: 'c'.repeat(32),
}

describe('NODE_RUNTIME=kubernetes', () => {
  test('is accepted with all the variables that it needs', () => {
    const { kubernetes, software, maxNodes } = readConfig(VALID)
    expect(kubernetes).toEqual({
      namespace: 'boltyard-nodes',
      storageClass: undefined,
      storageSize: '1Gi',
      snapshotClass: undefined,
      access: { host: '10.0.0.1', port: 6443 },
      hub: { host: 'hub.boltyard.svc', port: 9730, nodeToken: 'n'.repeat(32), controlToken: 'c'.repeat(32) },
    })
    expect([...(software.versions ?? [])]).toEqual([
      ['0.8.0', IMAGE],
      ['0.9.0', IMAGE],
    ])
    expect(maxNodes).toBe(10_000)
  })

  test('phoenixd needs no hub, and registration may be open: its nodes do not share a host', () => {
    const { SANDBOX_HUB, SANDBOX_HUB_NODE_TOKEN, SANDBOX_HUB_CONTROL_TOKEN, ...rest } = VALID
    const config = readConfig({ ...rest, NODE_SOFTWARE: 'phoenixd', REGISTRATION: 'open' })
    expect([config.kubernetes?.hub, config.registration]).toEqual([undefined, 'open'])
  })

  test('the reaper needs neither keys nor images', () => {
    const { NODE_RUNTIME = '', DATABASE_URL = '', KUBERNETES_SERVICE_HOST = '' } = VALID
    expect(readConfig({ ROLE: 'reaper', NODE_RUNTIME, DATABASE_URL, KUBERNETES_SERVICE_HOST }).role).toBe('reaper')
  })

  test.each<[variable: string, change: Record<string, string>]>([
    ['DATABASE_URL', { DATABASE_URL: '' }],
    ['NODE_VERSIONS', { NODE_VERSIONS: '' }],
    ['NODE_VERSIONS', { NODE_VERSIONS: '0.8.0=/a/hidden-value' }],
    ['NODE_VERSIONS', { NODE_VERSIONS: '0.8.0=hidden-value:latest' }],
    ['NODE_CALLBACK_URL', { NODE_CALLBACK_URL: '' }],
    ['KUBECONFIG', { KUBERNETES_SERVICE_HOST: '' }],
    ['KUBERNETES_SERVICE_PORT', { KUBERNETES_SERVICE_PORT: HIDDEN }],
    ['NODE_NAMESPACE', { NODE_NAMESPACE: 'hidden-value/../x' }],
    ['NODE_STORAGE_CLASS', { NODE_STORAGE_CLASS: 'hidden-value?' }],
    ['NODE_SNAPSHOT_CLASS', { NODE_SNAPSHOT_CLASS: 'HIDDEN-VALUE' }],
    ['NODE_STORAGE_SIZE', { NODE_STORAGE_SIZE: '0Gi' }],
    ['SANDBOX_HUB', { SANDBOX_HUB: 'hidden-value' }],
    ['SANDBOX_HUB_NODE_TOKEN', { SANDBOX_HUB_NODE_TOKEN: HIDDEN }],
    ['SANDBOX_HUB_CONTROL_TOKEN', { SANDBOX_HUB_CONTROL_TOKEN: 'hidden-value\nhttp-password=x' }],
  ])('%s is named, and its value is not (%#)', (variable, change) => {
    expect(() => readConfig({ ...VALID, ...change })).toThrow(expect.objectContaining({ exitCode: 78 }))
    expect(() => readConfig({ ...VALID, ...change })).toThrow(new RegExp(`^${variable}: (?!.*hidden-value)[^\\n]+$`))
  })

  test('ROLE=reaper is refused where nodes are processes', () => {
    expect(() => readConfig({ ROLE: 'reaper' })).toThrow(/^ROLE: /)
  })
})

describe('access to the API server', () => {
  const directory = mkdtempSync(join(tmpdir(), 'boltyard-access-'))
  afterAll(() => rmSync(directory, { recursive: true }))
  const file = (name: string, text: string): string => {
    const path = join(directory, name)
    writeFileSync(path, text)
    return path
  }
  const kubeconfig = (user: string, server = 'https://127.0.0.1:6443'): string => `
apiVersion: v1
kind: Config
current-context: two
contexts:
  - {name: one, context: {cluster: none, user: none}}
  - {name: two, context: {cluster: c, user: u}}
clusters: [{name: c, cluster: {server: "${server}", certificate-authority-data: ${Buffer.from('CA').toString('base64')}}}]
users: [{name: u, user: ${user}}]
`

  test('a kubeconfig with a token, a token file relative to it, or a client certificate', () => {
    const withToken = accessOfFile(file('token.yaml', kubeconfig('{token: t}')))
    expect([withToken.token(), withToken.ca?.toString(), withToken.server.host]).toEqual(['t', 'CA', '127.0.0.1:6443'])
    file('the-token', 'from a file\n')
    expect(accessOfFile(file('token-file.yaml', kubeconfig('{tokenFile: the-token}'))).token()).toBe('from a file')
    const data = Buffer.from('PEM').toString('base64')
    const withCertificate = accessOfFile(
      file('cert.yaml', kubeconfig(`{client-certificate-data: ${data}, client-key-data: ${data}}`)),
    )
    expect([withCertificate.cert?.toString(), withCertificate.key?.toString(), withCertificate.token()]).toEqual([
      'PEM',
      'PEM',
      undefined,
    ])
  })

  test.each([
    ['a plugin', kubeconfig('{exec: {command: hidden-value}}'), /plugins are not supported/],
    [
      'no such context',
      kubeconfig('{token: hidden-value}').replace('current-context: two', 'current-context: x'),
      /current context/,
    ],
    ['plain HTTP', kubeconfig('{token: hidden-value}', 'http://hidden-value'), /https/],
    ['not YAML', 'token: [hidden-value', /not valid YAML/],
  ])('%s is refused without showing what is in the file', (name, text, message) => {
    const path = file(`${name}.yaml`, text)
    expect(() => accessOfFile(path)).toThrow(message)
    expect(() => accessOfFile(path)).not.toThrow(/hidden-value/)
  })

  test('in a pod, the server is found for IPv4 and IPv6, and a missing service account is a fault of the configuration', () => {
    file('ca.crt', 'CA')
    file('token', 'first')
    const access = accessOfPod('10.0.0.1', 443, directory)
    expect([access.server.href, access.token()]).toEqual(['https://10.0.0.1/', 'first'])
    expect(accessOfPod('fd00::1', 6443, directory).server.host).toBe('[fd00::1]:6443')
    expect(() => accessOfPod('10.0.0.1', 443, '/nonexistent')).toThrow(expect.objectContaining({ exitCode: 78 }))
  })
})
