import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { SCRIPTS } from './scripts.ts'

/** Why no real control plane can run on this machine; undefined if one can. */
export function whyNoPlane(): string | undefined {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'a real Kubernetes needs Linux and root'
  if (spawnSync('go', ['version']).status !== 0) return 'a real Kubernetes is built with Go, which is not installed'
  return undefined
}

const CACHE = process.env.XDG_CACHE_HOME || join(homedir(), '.cache')
/** Where the programs are, helm among them, once they have been built. */
export const PLANE_DIRECTORY = process.env.BOLTYARD_PLANE_DIR || join(CACHE, 'boltyard', 'kubernetes')

/** The directory of the programs. They are built once per machine, because that takes minutes. */
export function planePrograms(): string {
  execFileSync(join(SCRIPTS, 'build-plane.sh'), [PLANE_DIRECTORY], { stdio: ['ignore', 'inherit', 'inherit'] })
  return PLANE_DIRECTORY
}

/**
 * Starts the real etcd, API server, controllers and scheduler as processes, with RBAC. The API server listens on the address. Without
 * controllers, objects stay as they are written.
 */
export function startPlane(
  address = '127.0.0.1',
  { hasControllers = true }: { hasControllers?: boolean } = {},
): { kubeconfig: string; stop: () => void } {
  const directory = mkdtempSync(join(tmpdir(), 'boltyard-plane-'))
  const env = { ...process.env, BIN: planePrograms(), CONTROLLERS: hasControllers ? 'yes' : 'no' }
  const script = (command: string): string =>
    execFileSync(join(SCRIPTS, 'plane.sh'), [command, directory, address], {
      env,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'inherit'],
    })
  const kubeconfig = script('start').trim()
  const stop = (): void => {
    script('stop')
    rmSync(directory, { recursive: true, force: true })
  }
  return { kubeconfig, stop }
}
