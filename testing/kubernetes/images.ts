import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { run, SCRIPTS } from './scripts.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

export const SERVICE_IMAGE = 'registry.test/boltyard'
export const NODE_IMAGE = 'registry.test/boltyard-sandbox-node'

/** Builds the service's image with all tags and a sandbox node's image, in a separate Docker engine. Returns the archive's path. */
export async function buildImages(directory: string, tags: string[]): Promise<string> {
  const engine = join(directory, 'docker')
  const script = (...args: string[]): Promise<string> => run(join(SCRIPTS, 'docker.sh'), args)
  const env = { DOCKER_HOST: `unix://${engine}/docker.sock`, DOCKER_CONFIG: join(engine, 'config') }
  const docker = (...args: string[]): Promise<string> => run('docker', args, { env, cwd: ROOT })
  const archive = join(directory, 'images.tar')
  try {
    // Without its own network, the engine leaves no bridge and no firewall rules behind.
    await script('start', engine, '--bridge=none', '--iptables=false', '--ip6tables=false', '--ip-forward=false')
    await script('base', engine, 'node:20-bookworm-slim')
    const names = tags.map((tag) => `${SERVICE_IMAGE}:${tag}`)
    const dockerfile = ['build', '--quiet', '--network', 'host', '-f', 'deploy/docker/Dockerfile']
    await docker(...dockerfile, ...names.flatMap((name) => ['-t', name]), '.')
    await docker(...dockerfile, '--target', 'sandbox-node', '-t', `${NODE_IMAGE}:test`, '.')
    await docker('save', '-o', archive, ...names, `${NODE_IMAGE}:test`)
    return archive
  } finally {
    await script('stop', engine)
    // Much faster than Node's own rm: the layers have hundreds of thousands of files.
    await run('rm', ['-rf', engine])
  }
}
