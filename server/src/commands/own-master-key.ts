import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from '../config.ts'
import { generatedSecret } from '../platform/data-dir.ts'
import { type MasterKey, masterKeyOf } from '../platform/secrets.ts'

/** Undefined: none was given or generated. A command never generates one. */
export function ownMasterKey(config: Config): MasterKey | undefined {
  if (config.masterKey) return masterKeyOf(config.masterKey)
  const path = join(config.dataDir, 'master.key')
  return existsSync(path) ? masterKeyOf(Buffer.from(generatedSecret(path), 'base64')) : undefined
}
