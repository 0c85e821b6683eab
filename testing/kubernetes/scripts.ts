import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

export const SCRIPTS = fileURLToPath(new URL('../../test/kubernetes', import.meta.url))

type Options = { env?: Record<string, string>; cwd?: string }

const execute = promisify(execFile)

/** Asynchronous, because the cluster's DNS runs in this process and must answer meanwhile. An error contains all that was printed. */
export async function run(program: string, args: string[], { env = {}, cwd }: Options = {}): Promise<string> {
  const options = { env: { ...process.env, ...env }, maxBuffer: 256 * 1024 ** 2, ...(cwd === undefined ? {} : { cwd }) }
  const child = execute(program, args, options)
  child.child.stdin?.end()
  try {
    return (await child).stdout
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string }
    throw new Error(`${program} ${args.join(' ')}\n${stdout}${stderr}`, { cause: error })
  }
}
