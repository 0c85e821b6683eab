import { parseArgs } from 'node:util'
import type { Config } from '../config.ts'
import { type Adoption, type AdoptionDeps, checkAdoption, findAdopted, insertAdopted, materialOf } from '../nodes/moving/adopt.ts'
import { markMoved, openAgain, openWalletDirectory, type WalletDirectory } from '../nodes/moving/wallet-directory.ts'
import { requireAsReleased } from '../nodes/moving/whole-wallet.ts'
import { crashpoint } from '../platform/crashpoint.ts'
import { isId } from '../platform/ids.ts'
import { hiddenDaemons, processesUsing } from '../platform/linux.ts'
import { checkMasterKey } from '../platform/master-key.ts'
import { StartFault } from '../platform/start-fault.ts'
import { sameVersion } from '../platform/versions.ts'
import { findAccount } from '../store/accounts.ts'
import type { Database } from '../store/db.ts'
import { findWallet } from '../store/nodes/moving.ts'
import { findSetting } from '../store/settings.ts'
import { ownMasterKey } from './own-master-key.ts'
import { faultOf, withRunningStore } from './running-store.ts'
import { networkOf, type WalletHome } from './wallet-home.ts'
import { withWalletHome } from './wallets.ts'

const USAGE =
  'usage: adopt DIRECTORY [--account ACCOUNT_ID] --version VERSION [--name NAME] [--access-mode limited|full] [--start] [--newest]; for a released node, --version is optional, and so is --account if it comes back'

/**
 * Makes a node of an existing wallet: the data directory of a phoenixd, or what `release` has written. The directory is copied
 * and cannot start a daemon afterwards.
 */
export async function adopt(config: Config, args: string[]): Promise<void> {
  const { directory, options } = readArguments(args)
  await withRunningStore(config, (sql) =>
    withWalletHome(config, sql, async (home) => {
      const wallet = openWalletDirectory(directory, networkOf(config))
      const deps = await depsOf(config, sql, home)
      const accountId = options.account ?? (await accountBefore(sql, wallet))
      const adoption = adoptionOf(wallet, accountId, options, deps.versions, home.versionThatRan(wallet))
      if (!isId('acct', accountId) || !(await findAccount(sql, accountId)))
        throw new StartFault(78, `--account: there is no such account`)
      const existing = (await findAdopted(sql, adoption)) ?? (await move(deps, home, adoption, options.newest ?? false))
      if (existing !== undefined) say(`Already adopted as ${existing}. Nothing was changed.`, home.reminder(directory))
      home.forget(wallet)
    }),
  )
}

async function move(deps: AdoptionDeps, home: WalletHome, adoption: Adoption, isNewest: boolean): Promise<string | undefined> {
  const { wallet } = adoption
  await checkAdoption(deps, adoption)
  const begun = await home.findBegun(wallet, isNewest)
  if (!isNewest) await requireAsReleased(wallet)
  if (wallet.movedTo !== undefined && wallet.movedTo !== begun)
    throw new StartFault(78, `${wallet.path} was moved to ${wallet.movedTo} already, which may be in use elsewhere`)
  await home.requireOnlyCopy(wallet, begun)
  requireUnused(wallet)
  await home.requireLock()
  const nodeId = await home.begin(wallet, begun)
  try {
    return await finish(deps, home, nodeId, adoption)
  } catch (error) {
    // The database may have committed even if its response was lost.
    const { exitCode, message } = faultOf(error)
    throw new StartFault(
      exitCode,
      message,
      `The wallet may have been adopted: repeat this command. Do not start it elsewhere: two daemons with one seed lose money.`,
    )
  }
}

async function finish(deps: AdoptionDeps, home: WalletHome, nodeId: string, adoption: Adoption): Promise<string | undefined> {
  markMoved(adoption.wallet, nodeId)
  const wallet = openAgain(adoption.wallet)
  const material = materialOf(wallet)
  // A daemon may have read the seed just before it was replaced.
  await home.fill(nodeId, wallet, material, () => requireUnused(wallet))
  const other = await insertAdopted(deps, nodeId, { ...adoption, wallet }, material, home.requireLock)
  if (other !== undefined) return other
  crashpoint('adopt: committed')
  say(
    `Adopted as ${nodeId}. ${adoption.isStarted ? 'The service starts it now.' : 'It is stopped until its owner starts it.'}`,
    home.reminder(wallet.path),
  )
  const { notKept } = wallet.conf
  if (notKept.length > 0)
    process.stderr.write(`These settings were not kept, because nodes do not support them: ${notKept.join(', ')}.\n`)
  return undefined
}

function requireUnused({ path, opened }: WalletDirectory): void {
  const pids = processesUsing(opened, path)
  if (pids.length > 0)
    throw new StartFault(
      78,
      `${path} is in use by process ${pids.join(', ')}; stop it, and make sure that nothing starts it again`,
    )
  const hidden = hiddenDaemons()
  if (hidden.length > 0)
    throw new StartFault(
      78,
      `this user cannot see whether process ${hidden.join(', ')} uses ${path}; stop every daemon of other users while it is adopted`,
    )
}

async function depsOf(config: Config, sql: Database, { host, versions }: WalletHome): Promise<AdoptionDeps> {
  const master = ownMasterKey(config)
  if (!master)
    throw new StartFault(78, 'MASTER_KEY: not set, and DATA_DIR has no generated key; set it to the master key of the service')
  // Writes nothing: only the service replaces the check value of a previous key.
  const settings = { settingOnce: (name: string) => findSetting(sql, name), replaceSetting: async () => undefined }
  await checkMasterKey(settings, master, undefined)
  return { sql, config, master, host, versions }
}

type Options = Partial<Record<'account' | 'version' | 'name' | 'access-mode', string>> & { start?: boolean; newest?: boolean }

/** A wallet that comes back belongs to the account that it was released from, for example after this installation was moved. */
async function accountBefore(sql: Database, { lightningId }: WalletDirectory): Promise<string> {
  const known = await findWallet(sql, lightningId)
  if (!known) throw new StartFault(78, '--account: required, because this wallet was never part of this installation')
  return known.accountId
}

function adoptionOf(
  wallet: WalletDirectory,
  accountId: string,
  options: Options,
  versions: string[],
  ran: string | undefined,
): Adoption {
  const { manifest } = wallet
  const accessMode = options['access-mode'] ?? manifest?.accessMode ?? 'limited'
  if (accessMode !== 'limited' && accessMode !== 'full') throw new StartFault(78, '--access-mode: must be limited or full')
  const version = options.version ?? ran ?? manifest?.version
  if (version === undefined)
    throw new StartFault(
      78,
      '--version: is required: the version of phoenixd that ran last, because an older one can ruin its data',
    )
  if (manifest?.version !== undefined && !isSameOrLater(versions, version, manifest.version))
    throw new StartFault(
      78,
      `--version: ${wallet.path} was released with ${JSON.stringify(manifest.version)}; give that one, or a later one in NODE_VERSIONS`,
    )
  if (ran !== undefined && !isSameOrLater(versions, version, ran))
    throw new StartFault(
      78,
      `--version: ${wallet.path} last ran ${JSON.stringify(ran)}; give that one, or a later one in NODE_VERSIONS`,
    )
  return {
    accountId,
    wallet,
    version,
    name: options.name ?? manifest?.name,
    accessMode,
    isStarted: options.start ?? false,
  }
}

/** The catalog has the oldest first. A version that is not in it cannot be compared. */
function isSameOrLater(versions: string[], version: string, than: string): boolean {
  const [at, before] = [version, than].map((wanted) => versions.findIndex((one) => sameVersion(one, wanted))) as [number, number]
  return sameVersion(version, than) || (before >= 0 && at > before)
}

function readArguments(args: string[]): { directory: string; options: Options } {
  const text = { type: 'string' } as const
  try {
    const { values, positionals } = parseArgs({
      args,
      allowPositionals: true,
      options: {
        account: text,
        version: text,
        name: text,
        'access-mode': text,
        start: { type: 'boolean' },
        newest: { type: 'boolean' },
      },
    })
    const [directory] = positionals
    if (directory !== undefined && positionals.length === 1) return { directory, options: values }
  } catch {
    // an unknown option, or one without its value
  }
  throw new StartFault(78, USAGE)
}

function say(what: string, reminder: string): void {
  process.stderr.write(`${what} ${reminder}\n`)
}
