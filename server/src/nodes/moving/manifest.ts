import { isReadable } from '../../../../contract/src/readable-text.ts'
import type { FileDigest } from '../../platform/file-digest.ts'

/** A file that a release writes beside the wallet. If a node adopts the wallet, the file stays in its directory. Contains no secrets. */
export const MANIFEST = 'boltyard.json'

export type Manifest = {
  format: 1
  /** Every release in the life of the wallet, oldest first; the last one wrote this directory. */
  releases: string[]
  /** The node that was released, in the installation it comes from. */
  nodeId: string
  name: string
  accessMode: 'limited' | 'full'
  /** The version that ran last; no older one may run on this data. Undefined in a node's own directory: an update changes it. */
  version: string | undefined
  releasedAt: number
  /** The channel database as it was released, to recognize an incomplete copy. Undefined in a node's own directory. */
  files: FileDigest[] | undefined
}

const FORMAT = 1
const MAX_RELEASES = 1_000
const MAX_FILES = 100

/** Undefined if it is not a manifest that this version understands. */
export function parseManifest(text: string): Manifest | undefined {
  let value: Partial<Manifest> | null
  try {
    value = JSON.parse(text) as Partial<Manifest> | null
  } catch {
    // not JSON
    return undefined
  }
  const { format, releases, nodeId, name, accessMode, version, releasedAt, files } = value ?? {}
  const isId = (text: unknown): text is string => typeof text === 'string' && /^[\w-]{1,64}$/.test(text)
  if (format !== FORMAT || !Array.isArray(releases) || releases.length > MAX_RELEASES || !releases.every(isId)) return undefined
  if (!isId(nodeId) || typeof name !== 'string' || !isReadable(name)) return undefined
  if (version !== undefined && typeof version !== 'string') return undefined
  if ((accessMode !== 'limited' && accessMode !== 'full') || !Number.isInteger(releasedAt)) return undefined
  if (files !== undefined && !(Array.isArray(files) && files.length <= MAX_FILES && files.every(isFileDigest))) return undefined
  return { format, releases, nodeId, name, accessMode, version, releasedAt: releasedAt as number, files }
}

function isFileDigest(value: unknown): value is FileDigest {
  const { name, bytes, sha256 } = (value ?? {}) as Partial<FileDigest>
  return typeof name === 'string' && Number.isInteger(bytes) && /^[0-9a-f]{64}$/.test(String(sha256))
}

export const manifestText = (manifest: Manifest): string => `${JSON.stringify(manifest, null, 2)}\n`
