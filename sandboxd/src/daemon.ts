import { once } from 'node:events'
import { mkdirSync, readdirSync } from 'node:fs'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { ApiServer } from './api/server.ts'
import { generateSecret } from './conf-file.ts'
import { lockDataDir } from './data-dir-lock.ts'
import { Journal } from './journal.ts'
import { encodeOffer } from './lightning/offer.ts'
import { Log } from './log.ts'
import { controlServer } from './node/control.ts'
import { paymentReceived, Webhooks } from './node/events.ts'
import { HubLink } from './node/hub-link.ts'
import { Ledger, type LedgerRecord } from './node/ledger.ts'
import { LightningNode } from './node/node.ts'
import { type Options, readOptions } from './options.ts'
import { newSecret } from './secret.ts'
import { createSeedFile, nodeKeysOf, readSeedFile } from './seed.ts'
import { reasonOf, StartFault } from './start-fault.ts'
import { askToAgree } from './terms.ts'

const RECONNECT_MS = 500
/** The hub stores the addresses of nodes. Registering periodically restores an address that the hub has lost. */
const REGISTER_EVERY_MS = 15_000

export async function runNode(args: string[], environment: NodeJS.ProcessEnv): Promise<void> {
  const options = readOptions(args, environment)
  makeDataDir(options.dataDir)
  lockDataDir(join(options.dataDir, 'sandboxd.lock'))
  const secrets = secretsOf(options)
  const words = options.seedWords ?? (await seedWords(options))
  const keys = nodeKeysOf(words)
  const log = new Log(join(options.dataDir, 'phoenix.log'), options)

  log.info(`datadir: ${options.dataDir}`)
  log.info('chain: Regtest')
  log.info(`autoLiquidity: ${options.autoLiquiditySat} sat`)
  log.info(`maxFeeCredit: ${options.maxFeeCreditSat} sat`)
  log.info(`nodeid: ${keys.nodeId}`)
  log.info(`offer: ${encodeOffer({ nodeId: keys.nodeId })}`)

  const ledger = new Ledger({ peerUp: options.peerUpAtFirst, feeCredit: false, clockAheadMs: 0 })
  const journal = await Journal.open<LedgerRecord>(join(options.dataDir, `phoenix.regtest.${keys.nodeId.slice(0, 6)}.db`), {
    identity: `sandboxd node ${keys.nodeId}`,
    apply: (record) => ledger.apply(record),
    compact: () => ledger.compact(),
    log: (line) => log.info(line),
  })
  const hub = options.hub && new HubLink(options.hub)
  const webhooks = new Webhooks(secrets.webhook, options, (line) => log.detail(line))
  let api: ApiServer | undefined
  const node = new LightningNode({
    keys,
    ledger,
    journal,
    policy: options,
    deliver: hub && ((delivery) => hub.deliver(delivery)),
    log: (line) => log.info(line),
    onReceived: (incoming) => {
      const event = paymentReceived(incoming, node.now())
      api?.broadcast(event)
      for (const url of options.webhooks) webhooks.send(url, event)
      if (incoming.invoice.webhookUrl) webhooks.send(incoming.invoice.webhookUrl, event)
    },
  })

  // Opened before the peer is reached, so that a node waiting for its peer can still be controlled.
  let control: Server | undefined
  const controlToken = options.controlToken ?? (hub ? newSecret() : undefined)
  if (controlToken !== undefined) {
    const onPeerChange = (): void =>
      log.info(ledger.conditions.peerUp ? 'connected to lightning peer' : 'disconnected from lightning peer')
    control = controlServer(node, controlToken, onPeerChange, (line) => log.error(line))
    await listen(control, options.controlBind.host, options.controlBind.port).catch((error: unknown) => {
      throw new StartFault(`cannot listen on http://${options.controlBind.host}:${options.controlBind.port}: ${reasonOf(error)}`)
    })
    log.info(`sandbox controls on http://${options.controlBind.host}:${portOf(control)}`)
  }
  const register = async (): Promise<string | undefined> => {
    if (!ledger.conditions.peerUp) return 'the peer is switched off'
    return hub?.register({ nodeId: keys.nodeId, controlPort: control ? portOf(control) : 0, controlToken: controlToken ?? '' })
  }

  log.info('connecting to lightning peer...')
  for (let problem = await register(), last = ''; problem; problem = await register()) {
    if (problem !== last) log.detail(`no lightning peer yet: ${problem}`)
    last = problem
    await pause(RECONNECT_MS)
  }
  log.info('connected to lightning peer')

  api = new ApiServer(node, options.dataDir, secrets, (line) => log.error(line))
  try {
    await listen(api.http, options.bindIp, options.bindPort)
  } catch (error) {
    // phoenixd reports this on stderr and exits with 0. Supervisors must handle that, so do the same here.
    log.error(`cannot listen on http://${options.bindIp}:${options.bindPort}: ${reasonOf(error)}`)
    process.exit(0)
  }
  node.resumePending()
  const registration = setInterval(() => void register(), REGISTER_EVERY_MS)

  const shutDown = async (): Promise<void> => {
    log.info('shutting down...')
    clearInterval(registration)
    node.stop()
    control?.close()
    control?.closeAllConnections()
    await api?.close()
    hub?.close()
    await journal.close()
    process.exit(0)
  }
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => void shutDown())
  log.info(`listening on http://${options.bindIp}:${portOf(api.http)}`)
}

function makeDataDir(path: string): void {
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 })
  } catch (error) {
    throw new StartFault(`cannot create the data directory ${path}: ${reasonOf(error)}`)
  }
  const real = readdirSync(path).find((name) => /^phoenix\.(mainnet|testnet)\./.test(name))
  if (real)
    throw new StartFault(
      `${path} belongs to a real phoenixd (${real}): a sandbox must not run on its seed. Set PHOENIX_DATADIR to another directory.`,
    )
}

async function seedWords(options: Options): Promise<string> {
  const known = readSeedFile(options.seedPath)
  if (known !== undefined) return known
  const words = createSeedFile(options.seedPath)
  process.stdout.write('Generating new seed...done\n')
  if (!options.agreed) await askToAgree(options.dataDir)
  return words
}

/**
 * If any of the three secrets has to be generated, a control token is generated as well. A file that contains all three is not changed,
 * because it may be read-only.
 */
function secretsOf(options: Options): { full: string; limited: string; webhook: string } {
  const generate = (key: string, name: string): string => {
    process.stdout.write(`Generating ${name}...done\n`)
    return generateSecret(options.confPath, key)
  }
  const complete =
    options.httpPassword !== undefined && options.limitedPassword !== undefined && options.webhookSecret !== undefined
  const secrets = {
    full: options.httpPassword ?? generate('http-password', 'default api password'),
    limited: options.limitedPassword ?? generate('http-password-limited-access', 'limited access api password'),
    webhook: options.webhookSecret ?? generate('webhook-secret', 'webhook secret'),
  }
  if (!complete) options.controlToken ??= generate('sandbox-control-token', 'sandbox control token')
  return secrets
}

async function listen(server: Server, host: string, port: number): Promise<void> {
  server.listen(port, host)
  await once(server, 'listening')
}

function portOf(server: Server): number {
  return (server.address() as AddressInfo).port
}
