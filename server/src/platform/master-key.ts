import { derivedKey, type MasterKey, open, seal } from './secrets.ts'
import { StartFault } from './start-fault.ts'

const CHECK = 'master_key_check'
const PLAIN = Buffer.from('boltyard')

export type CheckSettings = {
  /** Writes the value unless one exists, and returns the stored one. */
  settingOnce: (name: string, value: Buffer) => Promise<Buffer>
  replaceSetting: (name: string, value: Buffer) => Promise<void>
}

/** Detects a wrong key before it seals anything: with rows sealed under two keys, losing either key loses data. */
export async function checkMasterKey(settings: CheckSettings, master: MasterKey, previous: MasterKey | undefined): Promise<void> {
  const stored = await settings.settingOnce(CHECK, checkValue(master))
  if (opens(master, stored)) return
  if (previous && opens(previous, stored)) return settings.replaceSetting(CHECK, checkValue(master))
  throw new StartFault(
    78,
    'MASTER_KEY: not the key that sealed this database; set that key, or to change it, start the service with that key as MASTER_KEY_PREVIOUS',
  )
}

function checkValue(master: MasterKey): Buffer {
  return seal(derivedKey(master, 'check'), CHECK, PLAIN)
}

function opens(master: MasterKey, sealed: Buffer): boolean {
  try {
    return open(derivedKey(master, 'check'), CHECK, sealed).equals(PLAIN)
  } catch {
    // wrong key: GCM authentication failed
    return false
  }
}
