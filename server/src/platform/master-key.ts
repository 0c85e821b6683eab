import type { Sql } from '../store/db.ts'
import { replaceSetting, settingOnce } from '../store/settings.ts'
import { derivedKey, type MasterKey, open, seal } from './secrets.ts'
import { StartFault } from './start-fault.ts'

const CHECK = 'master_key_check'
const PLAIN = Buffer.from('boltyard')

/** A wrong key must be noticed before it seals anything: what two keys sealed in one database can be lost with either. */
export async function checkMasterKey(sql: Sql, master: MasterKey, previous: MasterKey | undefined): Promise<void> {
  const stored = await settingOnce(sql, CHECK, checkValue(master))
  if (opens(master, stored)) return
  if (previous && opens(previous, stored)) return replaceSetting(sql, CHECK, checkValue(master))
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
