import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Metering } from './accounts/credit/metering.ts'
import { TopUps } from './accounts/credit/top-ups.ts'
import { openTreasury } from './accounts/credit/treasury.ts'
import { Keys } from './accounts/keys/keys.ts'
import { Links } from './accounts/people/links.ts'
import { SignIn } from './accounts/people/sign-in.ts'
import { type Config, readConfig } from './config.ts'
import { Deliveries } from './gateway/deliveries.ts'
import { Payments } from './gateway/payments.ts'
import { ProtocolKeys, resealProtocolKeys } from './gateway/protocol-keys.ts'
import { Validation } from './gateway/validation.ts'
import { buildApp } from './http/app.ts'
import { Nodes } from './nodes/nodes.ts'
import { requireSealingKeys, reseal } from './nodes/reseal.ts'
import { Wallets } from './nodes/wallets.ts'
import { generatedSecret, openDataDir, operatorTokenFile } from './platform/data-dir.ts'
import { type EmbeddedPostgres, embeddedAddress, startEmbedded } from './platform/embedded-postgres.ts'
import { firstRun } from './platform/first-run.ts'
import { isSupportedPlatform } from './platform/linux.ts'
import { createLogger } from './platform/log.ts'
import { checkMasterKey } from './platform/master-key.ts'
import { masterKeyOf } from './platform/secrets.ts'
import { StartFault } from './platform/start-fault.ts'
import { isStoreDown, openStore, type Sql, type StoreAddress } from './store/db.ts'
import { forgetOldAnswers } from './store/idempotency.ts'
import { forgetOldHits } from './store/limits.ts'
import { forgetOldLinks } from './store/links.ts'
import { migrate } from './store/migrate.ts'
import { forgetRemovedPayments, removeUnpaidPayments } from './store/payments.ts'
import { forgetEndedSessions } from './store/people.ts'
import { forgetOldFailures } from './store/sign-in-failures.ts'
import { openYard } from './yard.ts'

const STOP_TIMEOUT_MS = 10_000
const STORE_PATIENCE_MS = 30_000
const FORGET_EVERY_MS = 60_000
const REMOVED_AT_ONCE = 1_000
const LOAD_SIGN_IN_MS = 3_000

async function main(): Promise<void> {
  if (!isSupportedPlatform()) throw new StartFault(78, 'Boltyard runs on Linux: elsewhere /proc and flock are missing')
  const config = readConfig(process.env)
  const serves = config.role === 'api'
  openDataDir(config.dataDir, serves ? 'shared' : 'exclusive')
  if (config.store.kind === 'server') return serve(config, config.store.url, undefined)
  if (serves) return serve(config, await embeddedAddress(config.dataDir), undefined)
  const embedded = await startEmbedded(config.dataDir, config.postgresUser, (line) => process.stderr.write(`${line}\n`))
  try {
    await serve(config, embedded.connection, embedded)
  } catch (error) {
    await embedded.stop()
    throw error
  }
}

async function serve(config: Config, address: StoreAddress, embedded: EmbeddedPostgres | undefined): Promise<void> {
  const sql = openStore(address)
  await reachStore(sql)
  await migrate(sql)
  const master = masterKeyOf(config.masterKey ?? Buffer.from(generatedSecret(join(config.dataDir, 'master.key')), 'base64'))
  const previous = config.previousMasterKey && masterKeyOf(config.previousMasterKey)
  await checkMasterKey(sql, master, previous)
  await requireSealingKeys(sql, previous ? [master, previous] : [master])
  const operatorToken = operatorTokenOf(config)

  let stopping = false
  const isStopping = (): boolean => stopping
  const logger = await createLogger(config.logLevel)
  for (const warning of config.warnings) logger.warn(warning)
  const warn = (error: unknown): void => logger.warn({ err: error }, 'in the background')
  const keys = new Keys(sql, warn)
  const yard = await openYard(config, sql, master, logger)
  const topUps = new TopUps({ ...yard, sql, config, log: logger })
  const nodes = new Nodes({ ...yard, sql, config, master, topUps, isStopping })
  const stopNode = (accountId: string, nodeId: string): Promise<void> => nodes.stopForCredit(accountId, nodeId)
  const metering = new Metering({ sql, config, stopNode, log: logger })
  const protocolKeys = await ProtocolKeys.open(sql, master, previous)
  const signIn = new SignIn({ config, sql, master, logger })
  const links = new Links({ sql, config, signIn })
  const app = await buildApp({
    config,
    sql,
    keys,
    signIn,
    links,
    nodes,
    wallets: new Wallets({ ...yard, sql }),
    payments: new Payments({ ...yard, sql, config, protocolKeys }),
    validation: new Validation({ ...yard, sql, protocolKeys }),
    deliveries: new Deliveries(sql),
    topUps,
    settlements: yard.settlements,
    hub: yard.hub,
    lookUpNode: yard.lookUpNode,
    operatorToken,
    appDirectory: fileURLToPath(new URL('../../dashboard/dist', import.meta.url)),
    masterKeyId: master.id,
    isStopping,
    logger,
  })
  await app.listen({ host: config.host, port: config.port })
  const { port } = app.server.address() as AddressInfo
  // PORT=0: known only now.
  config.publicUrl = config.publicUrl.replace(/:0$/, `:${port}`)
  config.nodeCallbackUrl = config.nodeCallbackUrl.replace(/:0$/, `:${port}`)
  if (embedded) await firstRun(sql, keys, links, config)
  await openTreasury({ ...yard, sql, config, master, log: logger })
  if (config.role === 'all') metering.start()
  if (previous) {
    const everything = async (): Promise<number> =>
      (await resealProtocolKeys(sql, master, previous)) + (await reseal(sql, master, previous))
    everything().then(
      (count) =>
        logger.info(
          `${count} rows sealed anew; MASTER_KEY_PREVIOUS is not needed any more in a day, when the last idempotent answer under it is forgotten`,
        ),
      warn,
    )
  }
  const housekeeping = setInterval(
    () =>
      Promise.all([
        ...[forgetOldHits, forgetOldAnswers, forgetEndedSessions, forgetOldLinks, forgetOldFailures, forgetRemovedPayments].map(
          (forget) => forget(sql),
        ),
        removeUnpaid(sql, isStopping),
      ]).catch(warn),
    FORGET_EVERY_MS,
  )

  // Most of a second of work, which a person who opens the dashboard would wait for.
  setTimeout(() => signIn.load().catch(warn), LOAD_SIGN_IN_MS).unref()

  const stop = async (): Promise<void> => {
    stopping = true
    clearInterval(housekeeping)
    await Promise.race([Promise.all([app.close(), metering.close()]), pause(STOP_TIMEOUT_MS)])
    await yard.close()
    await keys.close()
    await sql.end({ timeout: 1 })
    await embedded?.stop()
    process.exit(0)
  }
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => void stop().catch(die))
  process.stdout.write(`boltyard ready ${config.publicUrl}\n`)
}

/** In batches, so that no statement takes long: more may have expired in a minute than one of them removes. */
async function removeUnpaid(sql: Sql, isStopping: () => boolean): Promise<void> {
  while (!isStopping() && (await removeUnpaidPayments(sql, REMOVED_AT_ONCE)) === REMOVED_AT_ONCE);
}

/** A database that starts together with us may need a moment more. */
async function reachStore(sql: Sql): Promise<void> {
  const deadline = Date.now() + STORE_PATIENCE_MS
  for (;;) {
    try {
      await sql`SELECT 1`
      return
    } catch (error) {
      if (!isStoreDown(error))
        throw new StartFault(78, `DATABASE_URL: the server refuses us (${(error as { code?: string }).code ?? 'unknown reason'})`)
      if (Date.now() > deadline) throw new StartFault(1, `cannot reach PostgreSQL (${(error as { code?: string }).code})`)
      await pause(250)
    }
  }
}

function operatorTokenOf(config: Config): string | undefined {
  const file = operatorTokenFile(config)
  if (file !== null) return generatedSecret(file)
  return typeof config.operator === 'object' ? config.operator.token : undefined
}

function die(error: unknown): never {
  const message = error instanceof Error ? error.message : String(error)
  process.stderr.write(`${error instanceof StartFault ? message : `fatal: ${message}`}\n`)
  process.exit(error instanceof StartFault ? error.exitCode : 1)
}

main().catch(die)
