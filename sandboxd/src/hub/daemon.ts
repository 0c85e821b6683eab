import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { generateSecret, readConf } from '../conf-file.ts'
import { lockDataDir } from '../data-dir-lock.ts'
import { Journal } from '../journal.ts'
import { choiceOf, integerOf, jsonServer, RequestFault, type Route, stringOf } from '../json-server.ts'
import { Log } from '../log.ts'
import { parseDelivery } from '../node/hub-link.ts'
import { reasonOf, StartFault } from '../start-fault.ts'
import { Hub } from './hub.ts'
import { HubLedger, type HubRecord } from './ledger.ts'

const HELP = `Usage: sandboxd hub [<options>]

The network that sandbox nodes pay each other through: a registry, a relay, a faucet and a customer's wallet.

Options:
  --datadir=<dir>         Data directory (default: ~/.sandboxd-hub)
  --http-bind-ip=<ip>     (default: 127.0.0.1)
  --http-bind-port=<int>  (default: 9730)
  -h, --help              Show this message and exit

<datadir>/hub.conf contains two secrets, created at the first start: node-token (for nodes) and control-token (for you).
<datadir>/node.conf contains the line that a node needs in its phoenix.conf.
`

const VERBS = 'clock|peer|fee-credit|payments|answers|explorer|fault|crash|channels'
const MAX_SAT = 9_007_199_254_740

type HubOptions = { dataDir: string; bindIp: string; bindPort: number }

function readHubOptions(args: string[]): HubOptions | undefined {
  let values: { [name: string]: string | boolean | undefined }
  try {
    const string = { type: 'string' } as const
    const options = {
      datadir: string,
      'http-bind-ip': string,
      'http-bind-port': string,
      help: { type: 'boolean', short: 'h' },
    } as const
    values = parseArgs({ args, options }).values
  } catch (error) {
    throw new StartFault(`Usage: sandboxd hub [<options>]\n\nError: ${(error as Error).message}`)
  }
  if (values.help) return undefined
  const bindPort = Number(values['http-bind-port'] ?? 9730)
  if (!Number.isInteger(bindPort) || bindPort < 0 || bindPort > 65_535)
    throw new StartFault('Error: invalid value for --http-bind-port')
  return {
    dataDir: String(values.datadir ?? join(homedir(), '.sandboxd-hub')),
    bindIp: String(values['http-bind-ip'] ?? '127.0.0.1'),
    bindPort,
  }
}

export async function runHub(args: string[]): Promise<void> {
  const options = readHubOptions(args)
  if (!options) {
    process.stdout.write(HELP)
    return
  }
  const { dataDir } = options
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 })
  } catch (error) {
    throw new StartFault(`cannot create the data directory ${dataDir}: ${reasonOf(error)}`)
  }
  lockDataDir(join(dataDir, 'hub.lock'))
  const confPath = join(dataDir, 'hub.conf')
  const conf = readConf(confPath)
  const secret = (key: string): string => conf.get(key)?.at(-1) ?? generateSecret(confPath, key)
  const tokens = { node: secret('node-token'), control: secret('control-token') }
  const log = new Log(undefined, { verbosity: 'default', logRotateBytes: 0, logRotateMaxFiles: 1 })

  const ledger = new HubLedger()
  const journal = await Journal.open<HubRecord>(join(dataDir, 'hub.db'), {
    identity: 'sandboxd hub',
    apply: (record) => ledger.apply(record),
    compact: () => ledger.compact(),
    log: (line) => log.info(line),
  })
  const hub = new Hub(ledger, journal)
  const server = jsonServer(routesOf(hub, ledger, tokens), (line) => log.error(line))
  server.listen(options.bindPort, options.bindIp)
  try {
    await once(server, 'listening')
  } catch (error) {
    throw new StartFault(`cannot listen on http://${options.bindIp}:${options.bindPort}: ${reasonOf(error)}`)
  }
  const { port } = server.address() as AddressInfo
  const nodeConfPath = join(dataDir, 'node.conf')
  try {
    writeFileSync(nodeConfPath, `\nsandbox-hub=${tokens.node}@${options.bindIp}:${port}\n`, { mode: 0o600 })
  } catch (error) {
    throw new StartFault(`cannot write ${nodeConfPath}: ${reasonOf(error)}`)
  }
  hub.resume((line) => log.error(line))

  const shutDown = async (): Promise<void> => {
    log.info('shutting down...')
    hub.close()
    server.close()
    server.closeAllConnections()
    await journal.close()
    process.exit(0)
  }
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => void shutDown())
  log.info(`datadir: ${dataDir}`)
  log.info(`listening on http://${options.bindIp}:${port}`)
}

function routesOf(hub: Hub, ledger: HubLedger, tokens: { node: string; control: string }): Route[] {
  const nodeView = ({ nodeId, host, port }: { nodeId: string; host: string; port: number }) => ({ nodeId, host, port })
  return [
    {
      method: 'POST',
      path: /^\/register$/,
      token: tokens.node,
      handle: async ({ body, remoteAddress }) => {
        const nodeId = stringOf(body, 'nodeId')
        if (!/^0[23][0-9a-f]{64}$/.test(nodeId)) throw new RequestFault(400, 'nodeId must be a compressed public key in hex')
        const port = integerOf(body, 'controlPort', 1, 65_535)
        await hub.register(nodeId, { host: remoteAddress, port, token: stringOf(body, 'controlToken') })
      },
    },
    {
      method: 'POST',
      path: /^\/relay$/,
      token: tokens.node,
      handle: ({ body }) => {
        const delivery = parseDelivery(body)
        if (!delivery) throw new RequestFault(400, 'the body is not a valid delivery')
        return hub.relay(delivery)
      },
    },
    {
      method: 'GET',
      path: /^\/nodes$/,
      token: tokens.control,
      handle: () => ({ nodes: [...ledger.nodes.values()].map(nodeView) }),
    },
    {
      method: 'GET',
      path: /^\/wallet$/,
      token: tokens.control,
      handle: () => ({
        grantedMsat: ledger.grantedMsat,
        paidMsat: ledger.paidMsat,
        pending: ledger.pendingGrants.size + ledger.pendingPayments.size,
      }),
    },
    {
      method: 'POST',
      path: /^\/pay$/,
      token: tokens.control,
      handle: async ({ body }) => {
        const amountSat = body.amountSat === undefined ? undefined : integerOf(body, 'amountSat', 1, MAX_SAT)
        const payer = body.payer === undefined ? undefined : stringOf(body, 'payer')
        const result = await hub.pay(stringOf(body, 'invoice'), amountSat, payer)
        if ('reason' in result) throw new RequestFault(409, result.reason)
        return result
      },
    },
    {
      method: 'POST',
      path: /^\/nodes\/([0-9a-f]{66})\/fund$/,
      token: tokens.control,
      handle: ({ params, body }) => hub.fund(params[0] ?? '', integerOf(body, 'amountSat', 1, MAX_SAT)),
    },
    {
      method: 'POST',
      path: new RegExp(`^/nodes/([0-9a-f]{66})/(${VERBS})$`),
      token: tokens.control,
      handle: ({ params: [nodeId, verb], body }) => hub.control(nodeId ?? '', choiceOf({ verb }, 'verb', VERBS.split('|')), body),
    },
  ]
}
