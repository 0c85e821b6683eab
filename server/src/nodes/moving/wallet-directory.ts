import { constants, existsSync, fstatSync, lstatSync, openSync, readdirSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { validateMnemonic } from '@scure/bip39'
import { wordlist } from '@scure/bip39/wordlists/english.js'
import { crashpoint } from '../../platform/crashpoint.ts'
import { readForeignFile, writeSecretFile } from '../../platform/data-dir.ts'
import type { UserIds } from '../../platform/linux.ts'
import { StartFault } from '../../platform/start-fault.ts'
import { lightningIdOf, type Network } from '../lightning-id.ts'
import { MANIFEST, type Manifest, parseManifest } from './manifest.ts'
import { parseConf, type WalletConf } from './wallet-conf.ts'

/** phoenixd's data directory with a complete wallet: seed, configuration and channels. */
export type WalletDirectory = {
  /** Only for messages: another directory may be at this path by now. */
  path: string
  /** A path that leads this process to the opened directory, even if it has been moved. */
  opened: string
  /** Device and inode: they identify the directory even if it is renamed. */
  dev: string
  ino: string
  network: Network
  owner: UserIds
  /** The words, separated by single spaces. */
  seed: string
  lightningId: string
  /** The node or the release that the wallet was moved to; undefined: it can still be started here. */
  movedTo: string | undefined
  conf: WalletConf
  /** The channel database and the files SQLite keeps beside it. Without the write-ahead log, the database may be hours old. */
  databaseFiles: string[]
  /** Undefined if the wallet was never released. */
  manifest: Manifest | undefined
}

/** Where the words are after the wallet was moved; `seed.dat` then says where it went. */
const MOVED_SEED = 'seed.dat.moved'

/** Not a valid seed, so a daemon that is started here by mistake stops with an error and does not create another wallet. */
const movedNotice = (target: string): string =>
  `Boltyard has moved this wallet to ${target}. Do not run it here: two daemons with one seed lose money.\n`
const NOTICE = /^Boltyard has moved this wallet to (\w+)\./

/** What phoenixd calls the networks in the names of its databases. */
const CHAINS: Record<Network, string[]> = { mainnet: ['mainnet'], testnet: ['testnet', 'testnet3'], regtest: ['regtest'] }

/**
 * Reads an untrusted directory: its owner may have put anything there. Throws with one line for the operator if it is not a complete wallet
 * for this network.
 */
export function openWalletDirectory(given: string, network: Network): WalletDirectory {
  return readWallet(
    orExplain(given, () => openDirectory(given)),
    network,
  )
}

function readWallet(directory: OpenDirectory, network: Network): WalletDirectory {
  const { path, opened, owner } = directory
  const names = orExplain(path, () => namesIn(directory))
  const refuse = (what: string): never => {
    throw new StartFault(78, `${path} ${what}`)
  }
  const readOwn = (name: string): string | undefined => {
    if (!names.includes(name)) return undefined
    return (
      readForeignFile(join(opened, name), owner.uid) ??
      refuse(`has a ${name} that is too large or linked, or belongs to another user`)
    )
  }
  const found = readOwn('seed.dat') ?? refuse('has no seed.dat')
  const movedTo = NOTICE.exec(found)?.[1]
  const words = movedTo === undefined ? found : (readOwn(MOVED_SEED) ?? refuse(`has no ${MOVED_SEED}`))
  const seed = (words.match(/[a-z]+/g) ?? []).join(' ')
  if (!validateMnemonic(seed, wordlist)) refuse('has a seed.dat without valid recovery words')
  const confText = readOwn('phoenix.conf') ?? refuse('has no phoenix.conf')
  const conf = parseConf(confText, (what) => refuse(`has a phoenix.conf ${what}`))
  if (conf.chain !== undefined && !CHAINS[network].includes(conf.chain))
    refuse(`is a wallet for another network; this installation uses ${network}`)
  const text = readOwn(MANIFEST)
  const manifest = text === undefined ? undefined : parseManifest(text)
  if (text !== undefined && !manifest) refuse(`has a ${MANIFEST} that this version cannot read`)
  const lightningId = lightningIdOf(seed, network)
  const databaseFiles = databaseFilesIn(names, network, lightningId)
  if (databaseFiles.length === 0) {
    const others = (Object.keys(CHAINS) as Network[]).filter((one) => one !== network)
    const other = others.find((one) => databaseFilesIn(names, one, lightningIdOf(seed, one)).length > 0)
    if (other) refuse(`is a wallet for ${other}; this installation uses ${network}`)
    refuse('has no channel database for its seed. Without one, its channels would be lost, so the wallet is not adopted')
  }
  for (const name of databaseFiles) {
    const stat = lstatSync(join(opened, name))
    if (!stat.isFile() || stat.nlink !== 1 || stat.uid !== owner.uid)
      refuse(`has a ${name} that is linked, or belongs to another user`)
    if (stat.size === 0 && name.endsWith('.db')) refuse(`has an empty ${name}`)
  }
  return { ...directory, network, seed, lightningId, movedTo, conf, databaseFiles, manifest }
}

/** Reads the contents again: a daemon may have run in the directory since it was opened. */
export function openAgain(known: WalletDirectory): WalletDirectory {
  const wallet = readWallet(known, known.network)
  if (wallet.seed !== known.seed) throw new StartFault(78, `${known.path} has a different seed than a moment ago`)
  return wallet
}

/**
 * Afterwards no daemon starts in this directory. The words are written to a second file before the notice replaces them in `seed.dat`, so
 * after a crash this can be repeated.
 */
export function markMoved({ path, opened, owner, seed }: WalletDirectory, target: string): void {
  // If we are not root, we are the owner: `openDirectory` has checked it.
  const given = process.getuid?.() === 0 ? owner : undefined
  try {
    writeSecretFile(join(opened, MOVED_SEED), seed, given)
    crashpoint('move: the words are kept')
    writeSecretFile(join(opened, 'seed.dat'), movedNotice(target), given)
    crashpoint('move: no daemon can start')
  } catch (error) {
    // Without the notice, a daemon could be started here while the wallet's node runs.
    throw new StartFault(78, `cannot write to ${path}: ${(error as NodeJS.ErrnoException).code ?? 'unknown reason'}`)
  }
}

/** `-shm` is left out: SQLite rebuilds it. */
function databaseFilesIn(names: string[], network: Network, lightningId: string): string[] {
  const databases = CHAINS[network].map((chain) => `phoenix.${chain}.${lightningId.slice(0, 6)}.db`)
  const present = databases.filter((name) => names.includes(name))
  return present.flatMap((name) => [name, `${name}-wal`, `${name}-journal`]).filter((name) => names.includes(name))
}

type OpenDirectory = Pick<WalletDirectory, 'path' | 'opened' | 'dev' | 'ino' | 'owner'>

/**
 * Only root or the owner can see which processes use the directory. The owner may put a link in its place at any time, and root must not
 * follow it: everything is reached through this descriptor, which is open until the command ends.
 */
function openDirectory(given: string): OpenDirectory {
  const path = realpathSync(given)
  const descriptor = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW)
  const stat = fstatSync(descriptor, { bigint: true })
  const owner = { uid: Number(stat.uid), gid: Number(stat.gid) }
  const self = process.getuid?.() ?? 0
  if (self !== 0 && self !== owner.uid)
    throw new StartFault(78, `${given} belongs to another user; give it to this one first (chown -R)`)
  return { path, opened: `/proc/self/fd/${descriptor}`, dev: String(stat.dev), ino: String(stat.ino), owner }
}

/** phoenixd creates neither links nor special files, so one in its directory may be an attack. */
function namesIn({ path, opened }: OpenDirectory): string[] {
  const entries = readdirSync(opened, { withFileTypes: true })
  const odd = entries.find((entry) => !entry.isFile() && !entry.isDirectory())
  if (odd) throw new StartFault(78, `${path} contains a link or a special file: ${JSON.stringify(odd.name)}`)
  // If the target directory already exists, `kubectl cp` and `scp -r` put the newer wallet inside the older one.
  const nested = entries.find((entry) => entry.isDirectory() && existsSync(join(opened, entry.name, 'seed.dat')))
  if (nested)
    throw new StartFault(
      78,
      `${path} contains another wallet in ${JSON.stringify(nested.name)}; move the newer one out and adopt it`,
    )
  return entries.filter((entry) => entry.isFile()).map(({ name }) => name)
}

function orExplain<T>(path: string, read: () => T): T {
  try {
    return read()
  } catch (error) {
    if (error instanceof StartFault) throw error
    throw new StartFault(78, `cannot read ${path}: ${(error as NodeJS.ErrnoException).code ?? 'unknown reason'}`)
  }
}
