import { randomBytes } from 'node:crypto'
import { generateMnemonic } from '@scure/bip39'
import { wordlist } from '@scure/bip39/wordlists/english.js'
import { derivedKey, type MasterKey, open, seal } from '../platform/secrets.ts'
import type { Sql } from '../store/db.ts'
import { findMaterial } from '../store/nodes/secrets.ts'
import type { NodeMaterial } from './runtime.ts'

export function newMaterial(): NodeMaterial {
  const secret = (): string => randomBytes(32).toString('hex')
  return {
    seed: generateMnemonic(wordlist, 128),
    password: secret(),
    restrictedPassword: secret(),
    webhookSecret: secret(),
    controlToken: secret(),
  }
}

/** The context is authenticated with the sealed value, so a value that was copied to another node cannot be opened. */
export const dashboardContext = (accountId: string, nodeId: string): string => `${accountId} ${nodeId} dashboard access`
export const webhookContext = (accountId: string, nodeId: string): string => `${accountId} ${nodeId} webhook secret`
export const materialContext = (accountId: string, nodeId: string): string => `${accountId} ${nodeId} material`

export type SealedSecrets = { keyId: string; dashboardAccess: Buffer; webhookSecret: Buffer; material: Buffer }

/** Each secret has its own key, so that code that may open dashboard access cannot open the seed. */
export function sealSecrets(
  master: MasterKey,
  accountId: string,
  nodeId: string,
  material: NodeMaterial,
  accessMode: 'limited' | 'full',
): SealedSecrets {
  const password = accessMode === 'full' ? material.password : material.restrictedPassword
  return {
    keyId: master.id,
    dashboardAccess: seal(derivedKey(master, 'dashboard access'), dashboardContext(accountId, nodeId), Buffer.from(password)),
    webhookSecret: seal(
      derivedKey(master, 'webhook secret'),
      webhookContext(accountId, nodeId),
      Buffer.from(material.webhookSecret),
    ),
    material: seal(
      derivedKey(master, 'node material'),
      materialContext(accountId, nodeId),
      Buffer.from(JSON.stringify(material)),
    ),
  }
}

export async function openMaterial(sql: Sql, keys: MasterKey[], nodeId: string): Promise<NodeMaterial> {
  const sealed = await findMaterial(sql, nodeId)
  const master = keys.find(({ id }) => id === sealed?.keyId)
  if (!sealed || !master) throw new Error(`the material of ${nodeId} cannot be opened`)
  const context = materialContext(sealed.accountId, nodeId)
  const plain = open(derivedKey(master, 'node material'), context, Buffer.from(sealed.material))
  return JSON.parse(plain.toString('utf8')) as NodeMaterial
}
