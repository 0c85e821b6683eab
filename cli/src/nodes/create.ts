import { createHash, randomUUID } from 'node:crypto'
import type { CreatedNode, CreateNodeParams, Node } from '../../../sdk/src/index.ts'
import type { Call } from '../call.ts'
import { readKey } from '../client.ts'
import { Failure, usage } from '../failure.ts'
import { isSystemError, readDocument, reasonOf, SecretFile } from '../files.ts'
import { moment, sanitize, sheet } from '../terminal.ts'
import { rowsOf, untilReady } from './node-view.ts'

/**
 * The service returns a node's secrets only once. So the file for them is created first and holds the idempotency key: whatever happens
 * after that, even a power cut, running the same command again completes the file without creating a second node.
 */
export async function create(call: Call): Promise<void> {
  const client = await call.client()
  const { file, idempotencyKey, isResumed, until } = prepare(call)
  const again = file ? 'the same command' : `boltyard nodes create --idempotency-key ${idempotencyKey}`
  const advice = [
    `The node may have been created. To get it and its credentials, or create it if it was not, run this ${until}:`,
    file
      ? `${again} (with --credentials-file ${sanitize(file.path)}, which holds the idempotency key)`
      : `${again} (with the same other options)`,
  ]
  call.spinner.show('Creating a node')
  let created: CreatedNode
  try {
    created = await call.change(advice, () => client.nodes.create(paramsOf(call), { idempotencyKey, signal: call.signal }))
  } catch (error) {
    // Every request was refused, so the file is not needed. The file of an earlier attempt is kept, because that attempt may have
    // created a node.
    if (!call.isUnknown && !isResumed) file?.remove()
    throw error
  }
  const { node, credentials } = created
  try {
    file?.write({ nodeId: node.id, endpointUrl: node.endpointUrl, ...credentials })
  } catch (error) {
    if (!isSystemError(error)) throw error
    const message = `${node.id} was created, but its credentials could not be written to the file: ${reasonOf(error)}.`
    throw new Failure('other', 'output_failed', message, {
      cause: error,
      next: [`To get them, run this ${until}:`, ...advice.slice(1)],
      details: { nodeId: node.id },
    })
  }
  if (!file)
    call.ifUnread = `The credentials of ${node.id} were not read. To get them again, run this ${until}: boltyard nodes create --idempotency-key ${idempotencyKey} (with the same other options)`
  await finish(call, created, file)
}

/** Slightly less than the service keeps an idempotency key. After that, the same key would create another node. */
const REMEMBERED_SECONDS = 23 * 3_600
/** A file from further in the future was written with a wrong clock, so its age is unknown. */
const MOST_SKEW_SECONDS = 300

/** `until`: how long the service will recognize the idempotency key. */
type Prepared = { file: SecretFile | undefined; idempotencyKey: string; isResumed: boolean; until: string }

function prepare(call: Call): Prepared {
  const given = call.text('idempotency-key')
  if (given !== undefined && !/^[\x20-\x7e]{1,255}$/.test(given))
    throw usage('--idempotency-key must have 1 to 255 printable ASCII characters.')
  const path = call.text('credentials-file')
  const fresh = given ?? randomUUID()
  // A key given by the user may have been used before.
  const lasting = (hours: number): string =>
    `within ${hours} hours${given === undefined ? '' : ' of the first attempt with this key'}`
  if (path === undefined) return { file: undefined, idempotencyKey: fresh, isResumed: false, until: lasting(24) }
  const left = readDocument(path)
  if (left && typeof left.idempotencyKey === 'string' && left.seed === undefined) return resume(call, path, left, given)
  const attempt = { idempotencyKey: fresh, account: accountMark(call), startedAt: Math.floor(Date.now() / 1000) }
  const file = SecretFile.create(path, 'the credentials', attempt)
  return { file, idempotencyKey: fresh, isResumed: false, until: lasting(23) }
}

/** Resumes only if the service will recognize the request: it keeps an idempotency key for a day, per API key. */
function resume(call: Call, path: string, left: Record<string, unknown>, given: string | undefined): Prepared {
  const idempotencyKey = String(left.idempotencyKey)
  const endsAt = Number(left.startedAt) + REMEMBERED_SECONDS
  const isOtherKey = given !== undefined && given !== idempotencyKey
  const now = Date.now() / 1000
  const obstacle = !(endsAt > now && Number(left.startedAt) < now + MOST_SKEW_SECONDS)
    ? 'made more than 23 hours ago, or with a wrong clock,'
    : left.account !== accountMark(call)
      ? 'made with another API key'
      : isOtherKey
        ? 'made with another idempotency key'
        : undefined
  if (obstacle) {
    throw usage(
      `${sanitize(path)} is from an attempt ${obstacle} and cannot be resumed. It will not be overwritten.`,
      'To see whether that attempt created a node: boltyard nodes list. For a new node, name another file.',
    )
  }
  call.note(`Resuming the earlier attempt recorded in ${sanitize(path)}.`)
  return { file: SecretFile.reopen(path), idempotencyKey, isResumed: true, until: `before ${moment(endsAt)}` }
}

/** Identifies an API key without revealing it. */
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
  // A person sees the secrets before the wait. A script gets one document after the wait, whatever its outcome.
  const isShown = !call.isJson
  call.spinner.stop()
  if (isShown) {
    process.stdout.write(sheet(rowsOf(node, call.paint), call.paint))
    process.stdout.write(
      file ? `\nIts recovery words and passwords are in ${sanitize(file.path)}.\n` : secretsOf(call, credentials),
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
    ['recovery words', sanitize(seed)],
    ['password', sanitize(password)],
    ['restricted', sanitize(restrictedPassword)],
  ]
  return `\n${paint('yellow', 'Store these now. They will not be shown again.')}\n${sheet(rows, paint)}`
}
