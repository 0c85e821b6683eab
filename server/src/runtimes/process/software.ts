import { spawnSync } from 'node:child_process'
import { chmodSync, copyFileSync, existsSync, mkdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import type { IdRange, UserIds } from '../../platform/linux.ts'
import { StartFault } from '../../platform/start-fault.ts'

/** The version reported by the bundled sandbox daemon, up to its first "-". */
const SANDBOX_VERSION = '0.8.0'

export function versionsOf(catalogue: Map<string, string> | undefined): string[] {
  return catalogue ? [...catalogue.keys()] : [SANDBOX_VERSION]
}

export type Software = { catalogue: Map<string, string[]>; sandbox: string[] }

/**
 * The commands that start nodes. The sandbox daemon is copied into the data directory: nodes outlive the checkout they were
 * started from, and if the service runs as root, each node runs as a user who may not be able to read that checkout.
 */
export function installSoftware(
  dataDir: string,
  sandboxDaemon: string,
  versions: Map<string, string> | undefined,
  uids: IdRange | undefined,
): Software {
  const directory = join(dataDir, 'software')
  mkdirSync(directory, { recursive: true })
  chmodSync(directory, 0o755)
  const daemon = copy(sandboxDaemon, join(directory, 'sandboxd.cjs'), 0o644)
  const sandbox = [interpreter(directory, uids && { uid: uids.from, gid: uids.from }), daemon]
  const catalogue = versions
    ? new Map([...versions].map(([version, path]) => [version, [path]]))
    : new Map([[SANDBOX_VERSION, sandbox]])
  return { catalogue, sandbox }
}

function copy(from: string, to: string, mode: number): string {
  try {
    copyFileSync(from, `${to}.new`)
  } catch (error) {
    throw new StartFault(1, `cannot install ${from}: ${(error as Error).message}`)
  }
  chmodSync(`${to}.new`, mode)
  renameSync(`${to}.new`, to)
  return to
}

/** Our own Node.js, or a copy of it if the nodes' users cannot reach it (below root's home, for example). */
function interpreter(directory: string, user: UserIds | undefined): string {
  // A clean environment: ours contains secrets, and the user can read the environment of its own processes.
  const asUser = { ...user, cwd: '/', env: { PATH: '/usr/local/bin:/usr/bin:/bin', HOME: '/' } }
  if (!user || spawnSync('test', ['-x', process.execPath], asUser).status === 0) return process.execPath
  const target = join(directory, `node-${process.version}`)
  return existsSync(target) ? target : copy(process.execPath, target, 0o755)
}
