import { derivedKey, type MasterKey, open, seal } from './secrets.ts'
import { StartFault } from './start-fault.ts'

const CHECK = 'master_key_check'
const PLAIN = Buffer.from('boltyard')

export type CheckSettings = {
  /** Writes the value unless there is one, and returns the one that is there. */
  settingOnce: (name: string, value: Buffer) => Promise<Buffer>
  replaceSetting: (name: string, value: Buffer) => Promise<void>
}

/** A wrong key must be noticed before it seals anything: what two keys sealed in one database can be lost with either. */
export async function checkMasterKey(settings: CheckSettings, master: MasterKey, previous: MasterKey | undefined): Promise<void> {
  const stored = await settings.settingOnce(CHECK, checkValue(master))
  if (opens(master, stored)) return
  if (previous && opens(previous, stored)) return settings.replaceSetting(CHECK, checkValue(master))
  throw new StartFault(78, 'MASTER_KEY: does not open this database, which was sealed under another key')
}

function checkValue(master: MasterKey): Buffer {
  return seal(derivedKey(master, 'check'), CHECK, PLAIN)
}

function opens(master: MasterKey, sealed: Buffer): boolean {
  try {
    return open(derivedKey(master, 'check'), CHECK, sealed).equals(PLAIN)
  } catch {
    // GCM refuses: another key
    return false
  }
}
