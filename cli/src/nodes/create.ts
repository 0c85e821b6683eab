import { createHash, randomUUID } from 'node:crypto'
import type { CreatedNode, CreateNodeParams, Node } from '../../../sdk/src/index.ts'
import type { Call } from '../call.ts'
import { readKey } from '../client.ts'
import { usage } from '../failure.ts'
import { readDocument, SecretFile } from '../files.ts'
import { harmless, sheet } from '../terminal.ts'
import { rowsOf, untilReady } from './node-view.ts'

/**
 * The service gives a node's secrets once. So the file for them is made first, holding the idempotency key: whatever happens then, up to
 * a power cut, the same command completes it, and makes no second node.
 */
export async function create(call: Call): Promise<void> {
  const client = await call.client()
  const { file, idempotencyKey, isResumed } = prepare(call)
  const again = file ? 'the same command again' : `boltyard nodes create --idempotency-key ${idempotencyKey}`
  const advice = [
    'It is not known whether the node was made. Within 24 hours this gives the same node and its credentials, or makes it:',
    file
      ? `${again} (with --credentials-file ${harmless(file.path)}, which remembers it)`
      : `${again} (and the other options as before)`,
  ]
  call.spinner.show('Creating a node')
  let created: CreatedNode
  try {
    created = await call.change(advice, () => client.nodes.create(paramsOf(call), { idempotencyKey, signal: call.signal }))
  } catch (error) {
    // Nothing was made, so nothing needs to be remembered; but of an earlier attempt that is not known.
    if (!call.isUnknown && !isResumed) file?.remove()
    throw error
  }
  const { node, credentials } = created
  file?.write({ nodeId: node.id, endpointUrl: node.endpointUrl, ...credentials })
  if (!file)
    call.ifUnread = `Nobody read the credentials of ${node.id}. Within 24 hours this gives them again: boltyard nodes create --idempotency-key ${idempotencyKey} (and the other options as before)`
  await finish(call, created, file)
}

/** A little less than the service remembers: past it, the same key would make another node. */
const REMEMBERED_SECONDS = 23 * 3_600

type Prepared = { file: SecretFile | undefined; idempotencyKey: string; isResumed: boolean }

function prepare(call: Call): Prepared {
  const given = call.text('idempotency-key')
  if (given !== undefined && !/^[\x20-\x7e]{1,255}$/.test(given))
    throw usage('--idempotency-key is 1 to 255 printable ASCII characters.')
  const path = call.text('credentials-file')
  const fresh = given ?? randomUUID()
  if (path === undefined) return { file: undefined, idempotencyKey: fresh, isResumed: false }
  const left = readDocument(path)
  if (left && typeof left.idempotencyKey === 'string' && left.seed === undefined) return resume(call, path, left, given)
  const file = SecretFile.create(path, 'the credentials')
  file.write({ idempotencyKey: fresh, account: accountMark(call), startedAt: Math.floor(Date.now() / 1000) })
  return { file, idempotencyKey: fresh, isResumed: false }
}

/** Only where the service takes it for the same request: it remembers a key of ours by API key, for a day. */
function resume(call: Call, path: string, left: Record<string, unknown>, given: string | undefined): Prepared {
  const idempotencyKey = String(left.idempotencyKey)
  const isOld = !(Number(left.startedAt) > Date.now() / 1000 - REMEMBERED_SECONDS)
  const isOther = left.account !== accountMark(call) || (given !== undefined && given !== idempotencyKey)
  if (isOld || isOther) {
    const why = isOld ? 'is from an attempt too long ago' : 'is from an attempt with another key'
    throw usage(
      `${harmless(path)} ${why}, and cannot be gone on with. It is not overwritten.`,
      'Whether that made a node: boltyard nodes list. For a new one name another file.',
    )
  }
  call.note(`Going on with what ${harmless(path)} remembers of an earlier attempt.`)
  return { file: SecretFile.reopen(path), idempotencyKey, isResumed: true }
}

/** Tells one key from another, and nothing about either. */
const accountMark = (call: Call): string => createHash('sha256').update(readKey(call)).digest('hex').slice(0, 16)

function paramsOf(call: Call): CreateNodeParams {
  const [name, autoLiquidity, accessMode] = [call.text('name'), call.text('auto-liquidity'), call.text('access-mode')]
  return {
    ...(name === undefined ? {} : { name }),
    ...(autoLiquidity === undefined ? {} : { autoLiquidity: autoLiquidity as '2m' }),
    ...(accessMode === undefined ? {} : { accessMode: accessMode as 'full' }),
  }
}

async function finish(call: Call, { node, credentials }: CreatedNode, file: SecretFile | undefined): Promise<void> {
  let latest: Node = node
  // A person sees the secrets before the wait. A script gets one document, with the node as it then is, however the wait ends.
  const isShown = !call.isJson
  call.spinner.stop()
  if (isShown) {
    process.stdout.write(sheet(rowsOf(node, call.paint), call.paint))
    process.stdout.write(
      file ? `\nIts recovery words and passwords are in ${harmless(file.path)}.\n` : secretsOf(call, credentials),
    )
  }
  try {
    if (call.flag('wait')) {
      latest = await untilReady(call, node.id, (seen) => {
        latest = seen
      })
      if (isShown) call.note(`${node.id} is ready.`)
    }
  } finally {
    if (!isShown) call.print(file ? { node: latest, credentialsFile: file.path } : { node: latest, credentials }, () => '')
  }
}

function secretsOf({ paint }: Call, { seed, password, restrictedPassword }: CreatedNode['credentials']): string {
  const rows: [string, string][] = [
    ['recovery words', harmless(seed)],
    ['password', harmless(password)],
    ['restricted', harmless(restrictedPassword)],
  ]
  return `\n${paint('yellow', 'Store these now: they are not shown again.')}\n${sheet(rows, paint)}`
}
