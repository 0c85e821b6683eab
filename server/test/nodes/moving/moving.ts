import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, cpSync, lstatSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { CRASHING_SERVER, SANDBOXD, SERVER } from '../../../../testing/bundles.ts'
import type { Created, Yard } from '../../support/crash.ts'
import { eventually, freePort, type Key, temporaryDirectory } from '../../support/server.ts'

/** Wallets that move between installations, and phoenixd daemons that run outside any installation. */

export type Outcome = { code: number | null; signal: NodeJS.Signals | null; stderr: string }

/** Runs a command of the program beside a running service. With `crashAt`, the command dies at that point as if by kill -9. */
export const command = (yard: Yard, args: string[], crashAt?: string, env = {}): Promise<Outcome> =>
  launch(yard, args, crashAt, env).outcome

export type Launched = { child: ChildProcess; outcome: Promise<Outcome> }

export function launch(yard: Yard, args: string[], crashAt?: string, env = {}): Launched {
  const store = yard.env.DATABASE_URL === undefined ? yard.sharedStoreEnv : {}
  const program = crashAt === undefined ? SERVER : CRASHING_SERVER
  const child = spawn(process.execPath, [program, ...args], {
    env: { PATH: process.env.PATH, DATA_DIR: yard.dataDir, ...store, ...yard.env, ...env, CRASH_AT: crashAt },
    stdio: ['ignore', 'inherit', 'pipe'],
  })
  let stderr = ''
  child.stderr?.on('data', (chunk: Buffer) => {
    stderr += chunk.toString('utf8')
  })
  const outcome = once(child, 'close').then(([code, signal]) => ({ code, signal, stderr }))
  return { child, outcome }
}

export const adopt = (yard: Yard, directory: string, { accountId }: Key, ...more: string[]): Promise<Outcome> =>
  command(yard, ['adopt', directory, '--account', accountId, ...more])

/** The id of the node, from what the command has printed. */
export function idOf({ code, stderr }: Outcome): string {
  const [, id] = /^(?:Adopted|Already adopted) as (node_\w+)\./.exec(stderr) ?? []
  if (code !== 0 || id === undefined) throw new Error(`not adopted (${code}): ${stderr}`)
  return id
}

/** A directory like that of a phoenixd outside of an installation: a copy of a stopped node's directory. */
export async function phoenixdOf(yard: Yard, { node }: Created): Promise<string> {
  await yard.expectOk(yard.v1('POST', `/${node.id}/stop`))
  const directory = join(temporaryDirectory(), 'phoenix')
  cpSync(yard.directory(node.id), directory, { recursive: true })
  const own = (path: string): void => chownSync(path, process.getuid?.() ?? 0, process.getgid?.() ?? 0)
  for (const name of readdirSync(directory)) own(join(directory, name))
  own(directory)
  return directory
}

/** Runs the sandbox daemon by hand, as an operator may have done before. Killed when the test has finished. */
export async function runDaemon(directory: string): Promise<ChildProcess & { said: () => string }> {
  const port = await freePort()
  const child = spawn(process.execPath, [SANDBOXD, '--agree-to-terms-of-service', `--http-bind-port=${port}`], {
    env: { PATH: process.env.PATH, PHOENIX_DATADIR: directory },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let text = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => {
      text += chunk.toString('utf8')
    })
  onTestFinished(() => {
    child.kill('SIGKILL')
  })
  await eventually(() => child.exitCode !== null || text.includes('datadir'), 'the daemon to start or to exit')
  return Object.assign(child, { said: () => text })
}

/** Every file with its mode and content, which a refused command must not change. A daemon may write its log meanwhile. */
export function contentsOf(directory: string): Record<string, string> {
  const entries = readdirSync(directory).map((name) => {
    const path = join(directory, name)
    const stat = lstatSync(path)
    return [name, `${stat.mode} ${stat.isFile() && name !== 'phoenix.log' ? readFileSync(path, 'base64') : ''}`]
  })
  return Object.fromEntries(entries)
}
