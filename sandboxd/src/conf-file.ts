import { appendFileSync, readFileSync } from 'node:fs'
import { newSecret } from './secret.ts'
import { reasonOf, StartFault } from './start-fault.ts'

export type ConfFile = Map<string, string[]>

/**
 * phoenixd's parser, including its quirks: the key is the text before the first "=", the value the text after the LAST one. Nothing is
 * trimmed, and there are no comments. A value that contains "=" is truncated, as in phoenixd.
 */
export function parseConf(text: string): ConfFile {
  const conf: ConfFile = new Map()
  for (const line of text.split(/\r?\n/)) {
    if (!line.includes('=')) continue
    const key = line.slice(0, line.indexOf('='))
    conf.set(key, [...(conf.get(key) ?? []), line.slice(line.lastIndexOf('=') + 1)])
  }
  return conf
}

export function readConf(path: string): ConfFile {
  try {
    return parseConf(readFileSync(path, 'utf8'))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return new Map()
    throw new StartFault(`cannot read ${path}: ${reasonOf(error)}`)
  }
}

/** Generates a missing secret and appends it to the file, so that the next start uses the same secret and the file's owner can read it. */
export function generateSecret(path: string, key: string): string {
  const secret = newSecret()
  try {
    appendFileSync(path, `\n${key}=${secret}`, { mode: 0o600, flush: true })
  } catch (error) {
    throw new StartFault(`cannot write ${key} to ${path}: ${reasonOf(error)}`)
  }
  return secret
}
