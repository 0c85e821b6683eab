import { readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'

/** Files that a service on this machine writes for its owner, so the first commands work without any setup. */

/** The service's data directory, found by the same rule the service uses. */
export function dataDirectory(): string {
  const { DATA_DIR, XDG_DATA_HOME } = process.env
  if (DATA_DIR) return DATA_DIR
  return process.getuid?.() === 0 ? '/var/lib/boltyard' : join(XDG_DATA_HOME || join(homedir(), '.local', 'share'), 'boltyard')
}

export const firstRunFile = (): string => join(dataDirectory(), 'first-run.json')

/**
 * The API key that the service created at its first start. Sent only to a service on this machine: any other would reject it, and might
 * log or leak it.
 */
export function firstRunKey(baseUrl: string): string | undefined {
  if (!URL.canParse(baseUrl) || !['127.0.0.1', 'localhost', '[::1]'].includes(new URL(baseUrl).hostname)) return undefined
  try {
    const { apiKey } = JSON.parse(readFileSync(firstRunFile(), 'utf8'))
    return typeof apiKey === 'string' ? apiKey : undefined
  } catch {
    // Missing, unreadable or not JSON: the caller reports that there is no key and names this file.
    return undefined
  }
}
