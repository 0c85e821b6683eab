import { expect, test } from 'vitest'
import { type LockFile, lockFile, lockFileProblems } from './lock-file.ts'

const changed = (change: (packages: LockFile['packages']) => void): string[] => {
  const lock = lockFile()
  change(lock.packages)
  return lockFileProblems(lock)
}
const remove = (packages: LockFile['packages'], path: string, key: 'integrity'): void => {
  if (packages[path]?.[key] === undefined) throw new Error(`${path} has no ${key} to remove`)
  delete packages[path][key]
}

test('security 21: everything that npm ci installs on Linux, x64 and arm64, is verified; no registry host is named', () => {
  expect(lockFileProblems(lockFile())).toEqual([])
})

test.each(['node_modules/fastify', 'node_modules/@esbuild/linux-arm64', 'node_modules/@rolldown/binding-linux-arm64-gnu'])(
  'security 21: %s without an integrity is found',
  (path) => {
    expect(changed((packages) => remove(packages, path, 'integrity'))).toEqual([`${path} has no sha512 integrity`])
  },
)

test('security 21: a weaker hash, a host and a lost entry are found', () => {
  expect(changed((packages) => Object.assign(packages['node_modules/fastify'] ?? {}, { integrity: 'sha1-x' }))).toHaveLength(1)
  expect(changed((packages) => Object.assign(packages['node_modules/fastify'] ?? {}, { resolved: 'http://host/' }))).toEqual([
    'node_modules/fastify names the host it was downloaded from',
  ])
  expect(changed((packages) => delete packages['node_modules/@rolldown/binding-linux-arm64-gnu'])).toEqual([
    'node_modules/rolldown has an optional dependency without an entry: @rolldown/binding-linux-arm64-gnu',
  ])
})
