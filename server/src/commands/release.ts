import { randomUUID } from 'node:crypto'
import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { Config } from '../config.ts'
import { MANIFEST, type Manifest, parseManifest } from '../nodes/moving/manifest.ts'
import { crashpoint } from '../platform/crashpoint.ts'
import { isId } from '../platform/ids.ts'
import { StartFault } from '../platform/start-fault.ts'
import type { Database } from '../store/db.ts'
import { beginRelease, findReleasable, findWallet, markExported, type ReleasableNode } from '../store/nodes/moving.ts'
import { faultOf, withRunningStore } from './running-store.ts'
import type { WalletHome } from './wallet-home.ts'
import { withWalletHome } from './wallets.ts'

const POLL_MS = 100
/** On top of the time that the service gives the node to stop. */
const EXTRA_WAIT_MS = 10_000

/**
 * Hands a node over to another installation, for good: it is stopped, this installation never starts it again, and its wallet is written to a
 * new directory. Every step can be repeated.
 */
export async function release(config: Config, args: string[]): Promise<void> {
  const [nodeId, directory] = args
  if (nodeId === undefined || directory === undefined || args.length > 2)
    throw new StartFault(78, 'usage: release NODE_ID DIRECTORY; the directory must not exist yet')
  await withRunningStore(config, (sql) => withWalletHome(config, sql, (home) => releaseTo(config, sql, home, nodeId, directory)))
}

async function releaseTo(config: Config, sql: Database, home: WalletHome, nodeId: string, directory: string): Promise<void> {
  const node = isId('node', nodeId) ? await findReleasable(sql, nodeId) : undefined
  if (!node) throw new StartFault(78, 'there is no such node')
  await requireReleasable(sql, home, node)
  if (existsSync(directory)) {
    if (!isExportOf(node, directory)) throw new StartFault(78, `${directory} already exists`)
    return exported(sql, node.id, directory)
  }
  const parent = dirname(resolve(directory))
  if (!existsSync(parent)) throw new StartFault(78, `${parent} does not exist`)
  // Purging a node removes everything beside its data whose name begins with its id, which could include this directory.
  if (!config.kubernetes && `${realpathSync(parent)}/`.startsWith(`${realpathSync(config.dataDir)}/`))
    throw new StartFault(78, `${directory} is inside DATA_DIR; choose a directory outside`)
  await home.requireLock()
  if (node.releasedAt === null) await begin(config, sql, node)
  try {
    await finish(config, sql, home, node, directory)
  } catch (error) {
    const { exitCode, message } = faultOf(error)
    throw new StartFault(exitCode, message, `${node.id} stays released, and its data here is kept. Repeat this command.`)
  }
}

async function finish(config: Config, sql: Database, home: WalletHome, node: ReleasableNode, directory: string): Promise<void> {
  // Read again: before the node stopped, an update may have changed its version.
  const released = await stopped(config, sql, home, node)
  await requireReleasable(sql, home, released)
  await home.requireLock()
  await home.writeTo(directory, released, manifestOf(released))
  await exported(sql, node.id, directory)
}

/** All checks of a release. They are repeated after the node has stopped. */
async function requireReleasable(sql: Database, home: WalletHome, node: ReleasableNode): Promise<void> {
  if (node.isTreasury) throw new StartFault(78, `${node.id} receives the top-ups of this installation, so it cannot be released`)
  if (node.releasedAt === null && node.deletedAt !== null) throw new StartFault(78, `${node.id} is deleted; undelete it first`)
  if (node.purgingAt !== null) throw new StartFault(78, `${node.id} was released long ago, and its data here is gone`)
  const latest = await findWallet(sql, node.lightningId)
  if (latest?.nodeId !== node.id)
    throw new StartFault(78, `${node.id} came back as ${latest?.nodeId}, whose data is newer; release that node instead`)
  await home.requireReleasable(node)
}

async function begin(config: Config, sql: Database, node: ReleasableNode): Promise<void> {
  const ids = { releaseId: `release_${randomUUID().replaceAll('-', '')}`, operationId: randomUUID() }
  const isBegun = await sql.begin((transaction) =>
    beginRelease(transaction, node, { ...ids, timeoutMs: config.operationTimeoutMs }),
  )
  if (!isBegun) throw new StartFault(75, `another operation is running on ${node.id}; try again when it has finished`)
  crashpoint('release: recorded')
}

/** The service stops the node. Its data is complete once no process uses it. */
async function stopped(config: Config, sql: Database, home: WalletHome, { id }: ReleasableNode): Promise<ReleasableNode> {
  const deadline = performance.now() + config.operationTimeoutMs + EXTRA_WAIT_MS
  for (;;) {
    const node = await findReleasable(sql, id)
    if (node?.operation === null && (await home.isStopped(node))) {
      crashpoint('release: stopped')
      return node
    }
    if (performance.now() > deadline) throw new StartFault(1, `${id} has not stopped yet: ${home.ifRunning}`)
    await pause(POLL_MS)
  }
}

const lastRelease = ({ releases }: ReleasableNode): string => releases.at(-1) ?? ''

function manifestOf(node: ReleasableNode): Manifest {
  const { id: nodeId, name, accessMode, releases, releasedAt } = node
  const version = node.history.version ?? node.desiredVersion
  return { format: 1, releases, nodeId, name, accessMode, version, releasedAt: releasedAt ?? 0, files: undefined }
}

function isExportOf(node: ReleasableNode, directory: string): boolean {
  const path = join(directory, MANIFEST)
  const manifest = existsSync(path) ? parseManifest(readFileSync(path, 'utf8')) : undefined
  return node.releasedAt !== null && manifest?.releases.at(-1) === lastRelease(node)
}

async function exported(sql: Database, nodeId: string, directory: string): Promise<void> {
  await markExported(sql, nodeId)
  process.stderr.write(
    [
      `Released ${nodeId} to ${directory}. This installation never starts it again.`,
      'THE DIRECTORY CONTAINS ITS SEED AND PASSWORDS. Adopt it once, in one installation only: two daemons with one seed lose money.\n',
    ].join('\n'),
  )
}
