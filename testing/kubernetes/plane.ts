import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const SCRIPTS = fileURLToPath(new URL('../../test/kubernetes', import.meta.url))

/** What a real control plane needs; undefined if this machine has it. */
export function whyNoPlane(): string | undefined {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'a real Kubernetes needs Linux and root'
  if (spawnSync('go', ['version']).status !== 0) return 'a real Kubernetes is built with Go, which is not installed'
  return undefined
}

/** Built once per machine, because it takes minutes. */
function programs(): string {
  const cache = process.env.XDG_CACHE_HOME || join(homedir(), '.cache')
  const directory = process.env.BOLTYARD_PLANE_DIR || join(cache, 'boltyard', 'kubernetes')
  execFileSync(join(SCRIPTS, 'build-plane.sh'), [directory], { stdio: ['ignore', 'inherit', 'inherit'] })
  return directory
}

/** etcd, the API server, the controllers and the scheduler: real, as processes on loopback, with RBAC. Returns the path of a kubeconfig. */
export function startPlane(): { kubeconfig: string; stop: () => void } {
  const directory = mkdtempSync(join(tmpdir(), 'boltyard-plane-'))
  const env = { ...process.env, BIN: programs() }
  const script = (command: string): string =>
    execFileSync(join(SCRIPTS, 'plane.sh'), [command, directory], { env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] })
  const kubeconfig = script('start').trim()
  const stop = (): void => {
    script('stop')
    rmSync(directory, { recursive: true, force: true })
  }
  return { kubeconfig, stop }
}
