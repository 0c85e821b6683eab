import { openSync, readFileSync, rmSync, statSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { Daemon } from '../../src/runtimes/process/daemon.ts'
import { temporaryDirectory } from '../support/server.ts'

test('a log over 10 MB keeps its last megabyte, and the process that has it open keeps appending', () => {
  const directory = temporaryDirectory()
  const path = join(directory, 'daemon.log')
  writeFileSync(path, `${'x'.repeat(11_000_000)}the end`)
  const held = openSync(path, 'a')
  new Daemon(directory, directory).trimLog()
  expect(statSync(path).size).toBe(1_000_000)
  writeSync(held, ', and on')
  expect(readFileSync(path, 'utf8').slice(-15)).toBe('the end, and on')
})

test('a small log is left alone', () => {
  const directory = temporaryDirectory()
  writeFileSync(join(directory, 'daemon.log'), 'one line\n')
  new Daemon(directory, directory).trimLog()
  expect(readFileSync(join(directory, 'daemon.log'), 'utf8')).toBe('one line\n')
})

test('C25: with a trimmed or lost log the version may have connected, so it is never rolled back', () => {
  const directory = temporaryDirectory()
  const log = join(directory, 'daemon.log')
  const daemon = new Daemon(directory, directory)
  expect(daemon.mayHaveSaid('connected')).toBe(false)
  writeFileSync(join(directory, 'run.json'), JSON.stringify({ attempt: 'a', port: 1, version: '1', run: 1, logFrom: 10 }))
  writeFileSync(log, 'connected\nstarting\n')
  expect(daemon.mayHaveSaid('connected')).toBe(false)
  writeFileSync(log, 'starting.\nconnected\n')
  expect(daemon.mayHaveSaid('connected')).toBe(true)
  writeFileSync(log, `connected\n${'x'.repeat(11_000_000)}`)
  daemon.trimLog()
  expect(daemon.mayHaveSaid('connected')).toBe(true)
  writeFileSync(join(directory, 'run.json'), JSON.stringify({ attempt: 'a', port: 1, version: '1', run: 1, logFrom: 0 }))
  rmSync(log)
  expect(daemon.mayHaveSaid('connected')).toBe(true)
})
