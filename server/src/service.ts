import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Accounts } from './accounts/accounts.ts'
import { Credit } from './accounts/credit/credit.ts'
import { Metering } from './accounts/credit/metering.ts'
import { TopUps } from './accounts/credit/top-ups.ts'
import { openTreasury } from './accounts/credit/treasury.ts'
import { firstRun } from './accounts/first-run.ts'
import { Keys } from './accounts/keys/keys.ts'
import { Installation } from './accounts/operator/installation.ts'
import { OperatorSessions } from './accounts/operator/sessions.ts'
import { Links } from './accounts/people/links.ts'
import { Settings } from './accounts/people/settings.ts'
import { SignIn } from './accounts/people/sign-in.ts'
import { resealTwoFactor, TwoFactor } from './accounts/people/two-factor.ts'
import { RequestLog } from './accounts/requests/request-log.ts'
import { type Config, operatorTokenFile } from './config.ts'
import { AccountChanges } from './events/account-changes.ts'
import { ChangeNotifier } from './events/change-notifier.ts'
import { EventFeed } from './events/feed.ts'
import { Sequencer } from './events/sequencer.ts'
import { AddressGuard, resolveByDns, resolveLocally } from './events/webhooks/address-guard.ts'
import { Dispatcher } from './events/webhooks/dispatcher.ts'
import { resealWebhooks } from './events/webhooks/signing.ts'
import { Webhooks } from './events/webhooks/webhooks.ts'
import { Deliveries } from './gateway/deliveries.ts'
import { PaymentSearch } from './gateway/payment-search.ts'
import { Payments } from './gateway/payments.ts'
import { ProtocolKeys, resealProtocolKeys } from './gateway/protocol-keys.ts'
import { Received } from './gateway/received.ts'
import { Validation } from './gateway/validation.ts'
import { X402 } from './gateway/x402.ts'
import { type App, buildApp } from './http/app.ts'
import { serveHealth } from './http/health-listener.ts'
import { holdFreePort } from './http/held-port.ts'
import type { RedisHits } from './limits/redis-hits.ts'
import { openNodeHost, openReaper } from './node-host.ts'
import { type CreateNodeParams, insertPrepared, prepareNode } from './nodes/create.ts'
import { NodeLogs } from './nodes/logs/node-logs.ts'
import { Nodes } from './nodes/nodes.ts'
import { requireSealingKeys, reseal } from './nodes/reseal.ts'
import { Wallets } from './nodes/wallets.ts'
import { generatedSecret, openDataDir } from './platform/data-dir.ts'
import { embeddedAddress, startEmbedded } from './platform/embedded-postgres.ts'
import { createLogger, type Logger, type Output } from './platform/log.ts'
import { checkMasterKey } from './platform/master-key.ts'
import { type MasterKey, masterKeyOf } from './platform/secrets.ts'
import { portFault } from './platform/start-fault.ts'
import { isDaemonPort } from './runtimes/process/places.ts'
import { Sandbox } from './sandbox/sandbox.ts'
import { openStore, type Sql, type StoreAddress } from './store/db.ts'
import { CHORES, type ChoreOptions } from './store/housekeeping.ts'
import { countHit } from './store/limits.ts'
import { migrate } from './store/migrate.ts'
import { checkStore, reachStore } from './store/reach.ts'
import { replaceSetting, settingOnce } from './store/settings.ts'
import { SlowReads } from './store/slow-reads.ts'
import { statsOf } from './store/stats.ts'

const STOP_TIMEOUT_MS = 10_000
const CHORES_EVERY_MS = 60_000

export type Service = {
  /** PUBLIC_URL, with the chosen port if PORT is 0. */
  url: string
  app: App
  close: () => Promise<void>
}

/** Close functions of everything opened so far, called in reverse order. */
type Opened = (() => unknown)[]

/** For ROLE=reaper: no API, only the removal of deleted nodes past their retention period, and health checks. */
export async function startReaper(config: Config): Promise<{ close: () => Promise<void> }> {
  const opened: Opened = []
  const sql = openStore(await storeAddress(config, opened, process.stderr))
  await reachStore(sql)
  await migrate(sql)
  const log = await createLogger(config.logLevel)
  const closeHealth = await serveHealth({ config, checkStore: () => checkStore(sql), log })
  const reaper = await openReaper({ config, sql, log })
  return {
    close: async () => {
      await reaper.close()
      await closeHealth()
      await sql.end({ timeoutMs: 1_000 })
    },
  }
}

export async function startService(config: Config, output: Output = process.stderr): Promise<Service> {
  const opened: Opened = []
  const close = async (): Promise<void> => {
    for (const closeOne of opened.splice(0).reverse()) await closeOne()
  }
  try {
    const { url, app } = await start(config, opened, output)
    return { url, app, close }
  } catch (error) {
    await close()
    throw error
  }
}

async function start(given: Config, opened: Opened, output: Output): Promise<{ url: string; app: App }> {
  const dataDir = openDataDir(given.dataDir, given.role === 'api' ? 'shared' : 'exclusive')
  opened.push(() => dataDir.release())
  const address = await storeAddress(given, opened, output)
  const sql = openStore(address)
  opened.push(() => sql.end({ timeoutMs: 1_000 }))
  await reachStore(sql)
  await migrate(sql)
  const masterKeys = await openMasterKeys(given, sql)
  const [master, previous] = masterKeys
  const operatorToken = operatorTokenOf(given)
  const logger = await createLogger(given.logLevel, output)
  for (const warning of given.warnings) logger.warn(warning)
  if (given.traces) {
    const { startTraces } = await import('./traces/traces.ts')
    opened.push(startTraces(given.traces, logger))
  }

  const { config, releasePort } = await withPort(given)
  opened.push(releasePort)
  const keys = new Keys(sql, logger)
  opened.push(() => keys.close())
  const slowReads = new SlowReads(sql)
  const requests = new RequestLog({ sql, slowReads, log: logger })
  opened.push(() => requests.close())
  const notifier = new ChangeNotifier({ sql, log: logger })
  opened.push(() => notifier.close())
  const noteChange = notifier.note
  const changes = new AccountChanges({ sql })
  opened.push(() => changes.close())
  const sequencer = new Sequencer({ sql, log: logger })
  opened.push(() => sequencer.close())
  const events = new EventFeed(sql)
  opened.push(() => events.close())
  const guard = addressGuardOf(config)
  const dispatcher = new Dispatcher({ sql, masterKeys, guard, log: logger })
  opened.push(() => dispatcher.close())
  const nodeHost = await openNodeHost({ config, sql, masterKeys, noteChange, log: logger })
  opened.push(() => nodeHost.close())

  let stopping = false
  const isStopping = (): boolean => stopping
  const topUps = new TopUps({ ...nodeHost, sql, config, log: logger })
  const offerTopUp = (accountId: string, missingMsat: number) => topUps.offer(accountId, missingMsat)
  const nodes = new Nodes({ ...nodeHost, sql, config, master, masterKeys, offerTopUp, isStopping })
  const stopNode = (accountId: string, nodeId: string): Promise<void> => nodes.stopForCredit(accountId, nodeId)
  const metering = new Metering({ sql, config, stopNode, log: logger })
  const protocolKeys = await ProtocolKeys.open(sql, master, previous)
  const twoFactor = new TwoFactor({ sql, masterKeys })
  const signIn = new SignIn({ config, sql, master, twoFactor, logger })
  const links = new Links({ sql, config, signIn })
  const credit = new Credit({ sql, slowReads, config, masterKeys })
  const redisHits = config.redisUrl === undefined ? undefined : await openRedis(config.redisUrl, logger, opened)
  const storeHits = config.store.kind === 'server' ? (key: string, windowMs: number) => countHit(sql, key, windowMs) : undefined
  const validation = new Validation({ ...nodeHost, sql, protocolKeys, noteChange })
  const { hub } = nodeHost
  const app = await buildApp({
    config,
    accounts: new Accounts({
      sql,
      slowReads,
      credit,
      signupCreditSat: config.signupCreditSat,
      countUpdates: (accountId) => nodes.countUpdates(accountId),
    }),
    credit,
    keys,
    requests,
    signIn,
    settings: new Settings({ sql, config, signIn, twoFactor, forgetKeys: () => keys.forgetCached() }),
    links,
    nodes,
    wallets: new Wallets({ ...nodeHost, sql }),
    nodeLogs: new NodeLogs({ ...nodeHost, sql }),
    received: new Received({ slowReads }),
    payments: new Payments({ ...nodeHost, sql, config, masterKeys, protocolKeys, noteChange }),
    paymentSearch: new PaymentSearch(sql, slowReads),
    validation,
    x402: new X402({ ...nodeHost, sql, validation }),
    deliveries: new Deliveries({ sql, noteChange }),
    changes,
    events,
    webhooks: new Webhooks({ sql, masterKeys, guard }),
    topUps,
    sandbox: hub && new Sandbox({ sql, hub, publicUrl: config.publicUrl }),
    lookUpNode: nodeHost.lookUpNode,
    reportSilence: nodeHost.reportSilence,
    receiveNodeEvent: nodeHost.receiveNodeEvent,
    operatorSessions:
      operatorToken === undefined
        ? undefined
        : new OperatorSessions({ sql, master, token: operatorToken, publicUrl: config.publicUrl }),
    installation: new Installation({ ...nodeHost, sql, config }),
    appDirectory: fileURLToPath(new URL('../../dashboard/dist', import.meta.url)),
    docsDirectory: fileURLToPath(new URL('../../site/dist', import.meta.url)),
    checkStore: () => checkStore(sql),
    countHit: redisHits ? (key, windowMs) => redisHits.count(key, windowMs) : storeHits,
    stats: () => statsOf(sql, master.id),
    isStopping,
    logger,
  })
  opened.push(() => inTime(Promise.all([app.close(), metering.close()])))
  await releasePort()
  await app.listen({ host: config.host, port: config.port }).catch((error: unknown) => {
    throw portFault(error, 'PORT', config)
  })
  if (config.metrics) {
    const { startMetrics } = await import('./metrics/metrics.ts')
    opened.push(await startMetrics({ ...nodeHost, settings: config.metrics, sql, redis: redisHits, log: logger }))
  }

  if (config.store.kind === 'embedded' && config.role === 'all') await firstRun(sql, keys, links, config, output)
  const createNode = (transaction: Sql, params: CreateNodeParams) =>
    insertPrepared(transaction, prepareNode({ ...nodeHost, master }, params))
  await openTreasury({ sql, config, createNode, wake: nodeHost.wake, log: logger })
  if (config.role === 'all') metering.start()
  if (previous) resealAll(sql, master, previous, logger)
  const { eventRetentionDays } = config
  const chores = setInterval(() => doChores(sql, { isStopping, eventRetentionDays }, logger), CHORES_EVERY_MS)
  opened.push(() => {
    stopping = true
    clearInterval(chores)
  })
  return { url: config.publicUrl, app }
}

/** Connections that never end must not keep the service from stopping. */
async function inTime(closing: Promise<unknown>): Promise<void> {
  const timer = new AbortController()
  await Promise.race([closing, pause(STOP_TIMEOUT_MS, undefined, { signal: timer.signal })])
  timer.abort()
}

async function storeAddress(config: Config, opened: Opened, output: Output): Promise<StoreAddress> {
  if (config.store.kind === 'server') return config.store.url
  if (config.role === 'api') return embeddedAddress(config.dataDir)
  const print = (line: string): boolean => output.write(`${line}\n`)
  const embedded = await startEmbedded(config.dataDir, config.postgresUser, print)
  opened.push(() => embedded.stop())
  return embedded.connection
}

/** Loaded on demand: most installations have no Redis. */
async function openRedis(url: string, log: Logger, opened: Opened): Promise<RedisHits> {
  const { RedisHits } = await import('./limits/redis-hits.ts')
  const hits = new RedisHits(url, log)
  opened.push(() => hits.close())
  return hits
}

/** The current key first, then the previous one, if MASTER_KEY_PREVIOUS is set. */
async function openMasterKeys(config: Config, sql: Sql): Promise<[MasterKey, ...MasterKey[]]> {
  const bytes = config.masterKey ?? Buffer.from(generatedSecret(join(config.dataDir, 'master.key')), 'base64')
  const [master, previous] = [masterKeyOf(bytes), config.previousMasterKey && masterKeyOf(config.previousMasterKey)]
  const settings = {
    settingOnce: (name: string, value: Buffer) => settingOnce(sql, name, value),
    replaceSetting: (name: string, value: Buffer) => replaceSetting(sql, name, value),
  }
  await checkMasterKey(settings, master, previous)
  const keys: [MasterKey, ...MasterKey[]] = previous ? [master, previous] : [master]
  await requireSealingKeys(sql, keys)
  return keys
}

function operatorTokenOf(config: Config): string | undefined {
  const file = operatorTokenFile(config)
  if (file !== null) return generatedSecret(file)
  return typeof config.operator === 'object' ? config.operator.token : undefined
}

/** With PORT=0, the port is chosen before anything is built, because nodes and links get URLs that contain it. */
async function withPort(config: Config): Promise<{ config: Config; releasePort: () => Promise<void> }> {
  if (config.port !== 0) return { config, releasePort: async () => undefined }
  const { port, release } = await holdFreePort(config.host)
  const known = (url: string): string => url.replace(/:0$/, `:${port}`)
  const { publicUrl, nodeCallbackUrl } = config
  return {
    config: { ...config, port, publicUrl: known(publicUrl), nodeCallbackUrl: known(nodeCallbackUrl) },
    releasePort: release,
  }
}

function addressGuardOf({ webhookAllowPrivate, isLocal, port, metrics }: Config): AddressGuard {
  return new AddressGuard({
    allowPrivate: webhookAllowPrivate,
    allowHttp: isLocal,
    isOwnPort: (one) => one === port || one === metrics?.port || isDaemonPort(one),
    resolve: webhookAllowPrivate ? resolveLocally : resolveByDns,
  })
}

function resealAll(sql: Sql, master: MasterKey, previous: MasterKey, log: Logger): void {
  const everything = async (): Promise<number> =>
    (await resealProtocolKeys(sql, master, previous)) +
    (await reseal(sql, master, previous)) +
    (await resealWebhooks(sql, master, previous)) +
    (await resealTwoFactor(sql, master, previous))
  everything().then(
    (count) =>
      log.info(
        `${count} rows resealed; MASTER_KEY_PREVIOUS can be removed in one day, when the last idempotent answer sealed with it has expired`,
      ),
    (error: unknown) => log.warn({ err: error }, 'cannot reseal all rows with the new master key; will retry at the next start'),
  )
}

function doChores(sql: Sql, options: ChoreOptions, log: Logger): void {
  for (const [what, remove] of Object.entries(CHORES))
    remove(sql, options).catch((error: unknown) => log.warn({ err: error }, `cannot remove old ${what}`))
}
