import { once } from 'node:events'
import { Boltyard } from '../../../sdk/src/index.ts'
import { settingsOf } from '../../../sdk/src/proxy/config/settings.ts'
import { freeSpelling } from '../../../sdk/src/proxy/config/spellings.ts'
import { createProxy, type ProxyConfig, type ProxyRoute, type ProxyServer } from '../../../sdk/src/proxy/index.ts'
import type { Call } from '../call.ts'
import { readKey } from '../client.ts'
import { Failure, usage } from '../failure.ts'
import { isSystemError, reasonOf } from '../files.ts'
import { sanitize } from '../terminal.ts'
import { readConfig } from './config-file.ts'
import { forPeople } from './routes-view.ts'

/** Concurrent calls to the gateway, which may have to wait for a node. */
const AT_ONCE = 64

export async function proxy(call: Call): Promise<void> {
  const file = call.text('config')
  if (file === undefined) throw usage('--config is required.', 'boltyard proxy --config boltyard.proxy.yaml')
  const { config, at } = readConfig(file)
  if (call.flag('print-routes')) return printRoutes(call, config)
  const server = createProxy(config, { client: clientFor(call, config) })
  const warning = spellingWarning(config)
  if (warning !== undefined) process.stderr.write(`boltyard proxy: ${sanitize(warning)}\n`)
  const ready: Ready = () => reasonAgainst(server.ready(), at(['node']))
  if (call.flag('check')) return check(call, server, ready)
  await serve(call, server, { config, file, ready })
}

function printRoutes(call: Call, config: ProxyConfig): void {
  const routes = settingsOf(config).routes.map(({ listed }) => listed)
  call.print({ routes }, () => forPeople(routes, call.paint))
}

/** Not `call.client`, whose limits and messages are for a single call and not for a server. */
function clientFor(call: Call, { routes }: ProxyConfig): Boltyard | undefined {
  if (routes.every(({ free, deny }) => free || deny !== undefined)) return undefined
  const apiKey = readKey(call)
  try {
    return new Boltyard({ apiKey, baseUrl: call.baseUrl, maxConcurrency: AT_ONCE })
  } catch (error) {
    if (error instanceof TypeError) throw usage(error.message)
    throw error
  }
}

async function check(call: Call, server: ProxyServer, ready: Ready): Promise<void> {
  call.spinner.show('Checking')
  const [gateway, upstream] = await Promise.all([ready(), reasonAgainst(server.reachUpstream())])
  const findings = [
    ...(gateway === undefined ? [] : [gateway]),
    ...(upstream === undefined ? [] : [`The upstream does not accept a connection: ${upstream}`]),
  ]
  const result = { routes: server.routes.length, gateway: outcome(gateway), upstream: outcome(upstream) }
  call.print(result, () => (findings.length > 0 ? '' : `Ready. ${countOf(server.routes)}\n`))
  if (findings.length > 0)
    throw new Failure('findings', 'not_ready', 'The proxy is not ready.', {
      next: findings.map((text) => sanitize(text)),
      isList: true,
    })
}

type Ready = () => Promise<string | undefined>

/** `nodePlace` is where the file names the node, for a node that does not exist. */
const reasonAgainst = (work: Promise<void>, nodePlace?: string): Promise<string | undefined> =>
  work.then(
    () => undefined,
    ({ message, cause }: Error) =>
      nodePlace !== undefined && (cause as { code?: unknown } | undefined)?.code === 'node_not_found'
        ? `${nodePlace}  node: ${message}`
        : message,
  )

const outcome = (reason: string | undefined): object => (reason === undefined ? { ok: true } : { ok: false, message: reason })

type Running = { config: ProxyConfig; file: string; ready: Ready }

async function serve(call: Call, server: ProxyServer, { config, file, ready }: Running): Promise<void> {
  const { host, port } = await server.listen().catch((error: unknown) => {
    if (!isSystemError(error)) throw error
    const { listen } = settingsOf(config)
    const advice = error.code === 'EADDRINUSE' ? ', or stop the program that uses the port' : ''
    throw new Failure('other', 'cannot_listen', `Cannot listen on ${addressOf(listen)}: ${reasonOf(error)}.`, {
      next: `Change \`listen\` in ${sanitize(file)}${advice}.`,
    })
  })
  process.stderr.write(
    `boltyard proxy: http://${addressOf({ host, port })} → ${sanitize(config.upstream)}. ${countOf(server.routes)}\n`,
  )
  // A gateway that is down must not keep free routes from working.
  void ready().then((text) => {
    if (text !== undefined) process.stderr.write(`boltyard proxy: ${sanitize(text)}\n`)
  })
  if (!call.signal.aborted) await once(call.signal, 'abort')
  const waiting = server.inProgress
  if (waiting > 0)
    process.stderr.write(`boltyard proxy: finishing ${waiting === 1 ? '1 request' : `${waiting} requests`} (at most 10 s).\n`)
  await server.close()
  const ended: unknown = call.signal.reason
  // An interruption is the usual end, and not an error.
  if (!(ended instanceof Failure && ended.exit === 'interrupted')) throw ended
}

const addressOf = ({ host, port }: { host: string; port: number }): string => `${host.includes(':') ? `[${host}]` : host}:${port}`

function spellingWarning(config: ProxyConfig): string | undefined {
  const { routes } = settingsOf(config)
  const found = freeSpelling(routes)
  const [free, paid] = [found?.free, found?.paid].map((index = -1) => `routes[${index}] (${routes[index]?.config.match})`)
  const advice =
    'If your program serves them as the same path, they cost nothing. List the free paths and deny the rest, or turn on strict and case-sensitive routing in your program.'
  return (
    found &&
    `${free} is free, and also matches other spellings of the paid ${paid}, such as capital letters or a trailing slash. ${advice}`
  )
}

function countOf(routes: readonly ProxyRoute[]): string {
  const count = (access: ProxyRoute['access']): number => routes.filter((route) => route.access === access).length
  return `${routes.length} routes: ${count('paid')} paid, ${count('free')} free, ${count('denied')} denied.`
}
