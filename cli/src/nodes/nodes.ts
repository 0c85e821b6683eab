import type { Node } from '../../../sdk/src/index.ts'
import type { Call } from '../call.ts'
import { confirmDeletion } from '../confirmation.ts'
import { Failure } from '../failure.ts'
import { ago, sanitize, sheet, table } from '../terminal.ts'
import { sleep } from '../waiting.ts'
import { nodeIdOf } from './node-id.ts'
import { rowsOf, statusOf, untilReady, WAIT_MS } from './node-view.ts'

const LOOK_MS = 1_000

export async function list(call: Call): Promise<void> {
  const nodes = await (await call.client()).nodes.list({ signal: call.signal })
  call.print({ nodes }, () =>
    nodes.length === 0
      ? 'No nodes yet. Create one: boltyard nodes create\n'
      : table(
          ['ID', 'NAME', 'STATUS', 'CREATED', 'ENDPOINT'],
          nodes.map((node) => [
            node.id,
            sanitize(node.name),
            statusOf(node, call.paint),
            ago(node.createdAt),
            sanitize(node.endpointUrl),
          ]),
          call.paint,
        ),
  )
}

export async function get(call: Call): Promise<void> {
  const client = await call.client()
  show(call, await client.nodes.get(await givenNode(call), { signal: call.signal }))
}

export async function rename(call: Call): Promise<void> {
  const [id, name] = [await givenNode(call), call.argument(1)]
  const client = await call.client()
  show(call, await call.change(lookAt(id), () => client.nodes.rename(id, name, { signal: call.signal })))
}

export const start = (call: Call): Promise<void> => move(call, 'start', 'Starting')
export const stop = (call: Call): Promise<void> => move(call, 'stop', 'Stopping')
export const restart = (call: Call): Promise<void> => move(call, 'restart', 'Restarting')

async function move(call: Call, step: 'start' | 'stop' | 'restart', doing: string): Promise<void> {
  const id = await givenNode(call)
  const client = await call.client()
  call.spinner.show(`${doing} ${id}`)
  show(call, await call.change(lookAt(id), () => client.nodes[step](id, options(call))))
}

export async function updates(call: Call): Promise<void> {
  const client = await call.client()
  const found = await client.nodes.updates(await givenNode(call), { signal: call.signal })
  call.print(found, () =>
    sheet(
      [
        ['running', sanitize(found.currentVersion)],
        ['latest', `${sanitize(found.latestVersion)}${found.updateAvailable ? '' : ' (no update available)'}`],
        ...(found.lastUpdateError === null ? [] : [['last update failed', sanitize(found.lastUpdateError)] as [string, string]]),
      ],
      call.paint,
    ),
  )
}

export async function update(call: Call): Promise<void> {
  const id = await givenNode(call)
  const client = await call.client()
  call.spinner.show(`Updating ${id}`)
  let node = await call.change(lookAt(id), () => client.nodes.update(id, call.text('to'), options(call)))
  const deadline = Date.now() + (call.number('timeout') === undefined ? WAIT_MS : call.timeoutMs)
  while (call.flag('wait') && node.updateStatus === 'updating') {
    if (Date.now() > deadline)
      throw new Failure('network', 'timeout', 'The update has not finished yet. It continues in the background.', {
        next: `To check: boltyard nodes get ${sanitize(id)}`,
      })
    await sleep(LOOK_MS, call.signal)
    node = await client.nodes.get(id, { signal: call.signal })
  }
  show(call, node)
  if (call.flag('wait') && node.updateStatus === 'failed') {
    throw new Failure('conflict', 'update_failed', 'The update failed.', { next: `To see why: boltyard nodes updates ${id}` })
  }
}

export async function remove(call: Call): Promise<void> {
  const id = await givenNode(call)
  const client = await call.client()
  const read = async (): Promise<{ value: string; consequences: string }> => {
    const { name, status } = await client.nodes.get(id, { signal: call.signal })
    const consequences = `${id} ${name} (${status}) and its endpoint will be deleted. Its data is kept for the retention period.`
    return { value: name, consequences }
  }
  await confirmDeletion(call, { what: 'node', id, field: 'name', read })
  call.spinner.show(`Deleting ${id}`)
  await call.change(lookAt(id), () => client.nodes.delete(id, { force: call.flag('force'), ...options(call) }))
  call.print({ id, deleted: true }, () => `Deleted ${id}.\n`)
}

export async function wait(call: Call): Promise<void> {
  show(call, await untilReady(call, await givenNode(call)))
}

const givenNode = (call: Call): Promise<string> => nodeIdOf(call, call.argument(0))
const options = (call: Call) => ({ signal: call.signal, timeoutMs: call.timeoutMs })
const lookAt = (id: string): string =>
  `The operation may have started; if so, the service will finish it. To check: boltyard nodes get ${sanitize(id)}`

function show(call: Call, node: Node): void {
  call.print(node, () => sheet(rowsOf(node, call.paint), call.paint))
}
