import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** Called by `npm run check`: npm verifies a download only if the lock file has its hash. */

type Entry = {
  link?: boolean
  inBundle?: boolean
  integrity?: string
  resolved?: string
  os?: string[]
  cpu?: string[]
  libc?: string[]
  optionalDependencies?: Record<string, string>
}
export type LockFile = { packages: Record<string, Entry> }

/** The platforms that the README promises. Entries for others may lack `integrity`: not every registry has those packages. */
const PLATFORMS = [
  { os: 'linux', cpu: 'x64', libc: 'glibc' },
  { os: 'linux', cpu: 'arm64', libc: 'glibc' },
]

export function lockFileProblems({ packages }: LockFile): string[] {
  return Object.entries(packages)
    .filter(([path, { link, inBundle }]) => path.includes('node_modules/') && !link && !inBundle)
    .flatMap(([path, entry]) => [
      ...(isInstalled(entry) && !entry.integrity?.startsWith('sha512-') ? [`${path} has no sha512 integrity`] : []),
      ...(entry.resolved === undefined ? [] : [`${path} names the host it was downloaded from`]),
      // npm leaves optional packages that a registry lacks out of the lock file, and then never installs them, without an error.
      ...Object.keys(entry.optionalDependencies ?? {})
        .filter((name) => !isLocked(packages, path, name))
        .map((name) => `${path} has an optional dependency without an entry: ${name}`),
    ])
}

function isInstalled({ os, cpu, libc }: Entry): boolean {
  return PLATFORMS.some((platform) => allows(os, platform.os) && allows(cpu, platform.cpu) && allows(libc, platform.libc))
}

/** As in package.json: a list of names, or of names with `!` in front that are excluded. */
function allows(names: string[] | undefined, name: string): boolean {
  if (names === undefined || names.includes('any')) return true
  return names.some((one) => one.startsWith('!')) ? !names.includes(`!${name}`) : names.includes(name)
}

/** Looks where Node would look for the package `name`: beside the package at `path`, then in each directory above. */
function isLocked(packages: LockFile['packages'], path: string, name: string): boolean {
  for (let from = path; ; from = from.slice(0, Math.max(0, from.lastIndexOf('node_modules/') - 1))) {
    if (`${from === '' ? '' : `${from}/`}node_modules/${name}` in packages) return true
    if (from === '') return false
  }
}

export const lockFile = (): LockFile =>
  JSON.parse(readFileSync(fileURLToPath(new URL('../package-lock.json', import.meta.url)), 'utf8'))

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const problems = lockFileProblems(lockFile())
  for (const problem of problems) process.stderr.write(`package-lock.json: ${problem}\n`)
  if (problems.length > 0) process.exit(1)
}
