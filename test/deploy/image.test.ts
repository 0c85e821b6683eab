import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { Server, temporaryDirectory } from '../../server/test/support/server.ts'
import { root } from '../source-graph.ts'

const read = (path: string): string => readFileSync(join(root, path), 'utf8')

/** Copies the files that .dockerignore allows into the build: its `!` lines, except what its `**` lines exclude again. */
function copyBuildContext(directory: string): void {
  const lines = read('.dockerignore').split('\n')
  const wanted = lines.filter((line) => line.startsWith('!')).map((line) => line.slice(1))
  const unwanted = lines.filter((line) => line.startsWith('**/')).map((line) => `--exclude=${line.slice(3)}`)
  const archive = execFileSync('tar', ['-c', ...unwanted, ...wanted], { cwd: root, maxBuffer: 1024 ** 3 })
  execFileSync('tar', ['-x', '-C', directory], { input: archive })
}

// Installs all packages twice and builds everything, which takes too long for every run of the suite.
test.runIf(process.env.FULL === '1')(
  'the Dockerfile’s build needs only the files it is given; its service, dashboard, sandbox and command line work',
  {
    timeout: 1_200_000,
  },
  async () => {
    const [source, out] = [temporaryDirectory(), join(temporaryDirectory(), 'out')]
    copyBuildContext(source)
    // As after a checkout with a strict umask: the image runs as another user, who must be able to read everything.
    execFileSync('chmod', ['-R', 'go=', source])
    const [, script = ''] = /^RUN (deploy\/\S+) \/out$/m.exec(read('deploy/docker/Dockerfile')) ?? []
    execFileSync(join(source, script), [out], { cwd: source, stdio: ['ignore', 'ignore', 'inherit'] })
    expect(execFileSync('find', [out, '-not', '-perm', '-o+r', '-not', '-type', 'l'], { encoding: 'utf8' })).toBe('')

    const server = await new Server({ store: 'embedded', command: [process.execPath, join(out, 'server/dist/main.js')] }).start()
    expect((await server.send('GET', '/readyz')).status).toBe(200)
    expect((await server.send('GET', '/dashboard/')).text).toContain('<html')
    expect((await server.send('GET', '/docs/')).status).toBe(200)
    const env = { PATH: process.env.PATH, SERVICE_API_KEY: server.firstRun.apiKey, SERVICE_BASE_URL: `${server.url}/v1` }
    const created = execFileSync(join(out, 'cli/bin/boltyard.js'), ['nodes', 'create', '--wait'], { env, encoding: 'utf8' })
    expect(JSON.parse(created).node.status).toBe('ready')
    await server.stop()
  },
)
