import { readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'

/** What a service on this machine writes for its owner, so that a first try needs no set-up. */

/** Where the service keeps its state, by the same rule as the service itself. */
export function dataDirectory(): string {
  const { DATA_DIR, XDG_DATA_HOME } = process.env
  if (DATA_DIR) return DATA_DIR
  return process.getuid?.() === 0 ? '/var/lib/boltyard' : join(XDG_DATA_HOME || join(homedir(), '.local', 'share'), 'boltyard')
}

export const firstRunFile = (): string => join(dataDirectory(), 'first-run.json')

/** The API key of the first start. Only for a service on this machine: the key is worth nothing elsewhere, and is nobody else's business. */
export function firstRunKey(baseUrl: string): string | undefined {
  if (!URL.canParse(baseUrl) || !['127.0.0.1', 'localhost', '[::1]'].includes(new URL(baseUrl).hostname)) return undefined
  try {
    const { apiKey } = JSON.parse(readFileSync(firstRunFile(), 'utf8'))
    return typeof apiKey === 'string' ? apiKey : undefined
  } catch {
    // Absent, of another user, or not JSON: the caller says that there is no key, and names this file.
    return undefined
  }
}
