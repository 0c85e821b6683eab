import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, test } from 'vitest'
import { removeAfterwards, temporaryDirectory } from '../../server/test/support/server.ts'
import { PROGRAMS } from './documented.ts'
import { pack } from './packed.ts'

/**
 * Code from the docs compiles under `strict` against the types of the packed package, with this repository's TypeScript. With FULL=1, also
 * with older versions, which are installed into an empty directory: `FULL=1 npm test -- sdk/test/documented.test.ts`
 */
const root = fileURLToPath(new URL('../..', import.meta.url))
const OLDER = ['5.4', '5.9', '6.0']
let directory: string

beforeAll(() => {
  // Inside the repository, so that the frameworks' types are found, but in no room, because other tests read the rooms at
  // the same time.
  directory = mkdtempSync(join(root, '.types-'))
  removeAfterwards(directory)
  const installed = join(directory, 'node_modules/@boltyard/sdk')
  mkdirSync(installed, { recursive: true })
  execFileSync('tar', ['-xzf', pack('sdk', temporaryDirectory()), '-C', installed, '--strip-components=1'])
  writeFileSync(join(directory, 'package.json'), JSON.stringify({ private: true, type: 'module' }))
  for (const [at, { program, line }] of PROGRAMS.entries()) writeFileSync(join(directory, `program${at}.ts`), program(line))
  writeFileSync(
    join(directory, 'client.ts'),
    `import { Boltyard, type Node } from '@boltyard/sdk'
const boltyard = new Boltyard()
export const all: Promise<Node[]> = boltyard.nodes.list()
// @ts-expect-error
export const none: number = boltyard.nodes.list()`,
  )
})

function compile(tsc: string, files: string[]): string {
  const compilerOptions = {
    strict: true,
    module: 'nodenext',
    target: 'es2022',
    lib: ['es2022', 'dom'],
    types: ['node'],
    skipLibCheck: true,
    noEmit: true,
  }
  writeFileSync(join(directory, 'tsconfig.json'), JSON.stringify({ compilerOptions, files }))
  try {
    return execFileSync(process.execPath, [tsc, '-p', directory], { encoding: 'utf8', stdio: 'pipe' })
  } catch (error) {
    return String((error as { stdout?: string }).stdout ?? error)
  }
}

const files = ['client.ts', ...PROGRAMS.map((_, at) => `program${at}.ts`)]

test.each(PROGRAMS)('$name: the line is in $page, as it is compiled here', ({ page, line }) => {
  expect(readFileSync(join(root, page), 'utf8')).toContain(line)
})

test('D4: every documented line compiles under strict', () => {
  expect(compile(join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin', 'tsc'), files)).toBe('')
})

describe.skipIf(!process.env.FULL)('with an older TypeScript', () => {
  const install = (version: string): string => {
    const place = temporaryDirectory()
    writeFileSync(join(place, 'package.json'), JSON.stringify({ private: true }))
    execFileSync('npm', ['install', '--no-audit', '--no-fund', `typescript@${version}`], { cwd: place, stdio: 'pipe' })
    return join(place, 'node_modules/typescript/bin/tsc')
  }

  test.each(OLDER)('D4: every documented line compiles under strict with TypeScript %s', (version) => {
    expect(compile(install(version), files)).toBe('')
  })

  test.each([...OLDER, '7.0'])('D4: the lines for Express compile with the types of Express 4 and TypeScript %s', (version) => {
    const place = temporaryDirectory()
    writeFileSync(join(place, 'package.json'), JSON.stringify({ private: true }))
    execFileSync('npm', ['install', '--no-audit', '--no-fund', '@types/express@4'], { cwd: place, stdio: 'pipe' })
    cpSync(join(place, 'node_modules/@types'), join(directory, 'node_modules/@types'), { recursive: true })
    try {
      const express = PROGRAMS.flatMap(({ name }, at) => (name.startsWith('Express') ? [`program${at}.ts`] : []))
      expect(compile(install(version), express)).toBe('')
    } finally {
      rmSync(join(directory, 'node_modules/@types'), { recursive: true })
    }
  })

  test('D15: TypeScript 4.9 finds the types of the client', () => {
    expect(compile(install('4.9'), ['client.ts'])).toBe('')
  })
})
