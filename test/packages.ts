import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { pack } from '../sdk/test/packed.ts'

/** `npm run check:packages`: packs every published package and checks it as npm, Node and TypeScript will see it. */

const root = fileURLToPath(new URL('..', import.meta.url))
const PUBLISHED = ['sdk', 'cli'] as const
/** What the registry shows, and what a reader needs to find the source and report a bug. */
const METADATA = ['description', 'keywords', 'homepage', 'bugs', 'repository', 'license', 'files', 'engines', 'publishConfig']

const problems: string[] = []
const directory = mkdtempSync(join(tmpdir(), 'boltyard-packages-'))
try {
  for (const room of PUBLISHED) {
    const manifest = JSON.parse(readFileSync(join(root, room, 'package.json'), 'utf8'))
    for (const field of METADATA) if (manifest[field] === undefined) problems.push(`${room}/package.json has no ${field}`)
    const tarball = pack(room, directory)
    judge('publint', 'run', '--strict', tarball)
    // The command line client has no types. The profile leaves out TypeScript before 4.7 (node10), which cannot read `exports`.
    if (manifest.exports) judge('attw', tarball, '--profile', 'node16', '--format', 'ascii')
  }
} finally {
  rmSync(directory, { recursive: true })
}
for (const problem of problems) process.stderr.write(`${problem}\n`)
if (problems.length > 0) process.exit(1)

function judge(tool: string, ...args: string[]): void {
  try {
    execFileSync(join(root, 'node_modules', '.bin', tool), args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
  } catch (error) {
    const { stdout, stderr } = error as { stdout: string; stderr: string }
    problems.push(`${tool} ${args.join(' ')}\n${stdout}${stderr}`)
  }
}
