import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import type { FastifyInstance } from 'fastify'
import { afterAll } from 'vitest'
import { OperatorSessions } from '../../src/accounts/operator/sessions.ts'
import { readConfig } from '../../src/config.ts'
import { buildApp } from '../../src/http/app.ts'
import type { AppDeps } from '../../src/http/deps.ts'
import { createLogger } from '../../src/platform/log.ts'
import { masterKeyOf } from '../../src/platform/secrets.ts'

/** The service's routes and hooks on a real socket, without a store, for tests of what is decided before the store is read. */

const DOCS = fileURLToPath(new URL('../../../site/dist', import.meta.url))
/** Operator sessions without a store: only the operator token itself is accepted. */
const sessionsWith = (token: string): OperatorSessions =>
  new OperatorSessions({ sql: undefined as never, master: masterKeyOf(Buffer.alloc(32)), publicUrl: 'http://localhost', token })

const apps: FastifyInstance[] = []
afterAll(async () => {
  await Promise.all(apps.map((app) => app.close()))
})

export async function openApp(env: Record<string, string> = {}, more: Partial<AppDeps> = {}): Promise<{ port: number }> {
  const deps: Partial<AppDeps> = {
    config: readConfig(env),
    lookUpNode: async () => 'not found',
    operatorSessions: sessionsWith('x'.repeat(32)),
    appDirectory: '/nonexistent',
    docsDirectory: DOCS,
    isStopping: () => false,
    logger: await createLogger('silent'),
    ...more,
  }
  const app = await buildApp(deps as AppDeps)
  apps.push(app)
  await app.listen({ host: '127.0.0.1', port: 0 })
  return { port: (app.server.address() as AddressInfo).port }
}

/** Every route of a service that has a sandbox and an operator API, as the router lists them. */
export async function registeredRoutes(): Promise<{ method: string; url: string }[]> {
  const deps = {
    config: readConfig({}),
    sandbox: {},
    operatorSessions: sessionsWith('x'.repeat(32)),
    appDirectory: '',
    docsDirectory: '/nonexistent/dist',
    isStopping: () => false,
    logger: await createLogger('silent'),
  }
  const app = await buildApp(deps as unknown as AppDeps)
  const tree = app.printRoutes({ commonPrefix: false }).split('\n')
  await app.close()
  const path: string[] = []
  return tree.flatMap((line) => {
    const [, indent = '', part = '', methods = ''] = /^([│ ├└─]*)(\S+) \((.*)\)$/.exec(line) ?? []
    path.splice(indent.length / 4 - 1, path.length, part)
    return methods === '' ? [] : methods.split(', ').map((method) => ({ method, url: path.join('') }))
  })
}
