import type { Call } from '../call.ts'
import { Failure, usage } from '../failure.ts'
import { sanitize } from '../terminal.ts'

/** Resolves a node's id or name to its id. Names are not unique; an ambiguous one fails, because a guess could delete the wrong node. */
export async function nodeIdOf(call: Call, given: string): Promise<string> {
  if (given.startsWith('node_')) return given
  const nodes = await (await call.client()).nodes.list({ signal: call.signal })
  const found = nodes.filter(({ name }) => name === given)
  if (found.length > 1)
    throw usage(`${found.length} nodes are named ${sanitize(given)}. Use an id instead.`, found.map(({ id }) => id).join(' '))
  if (!found[0])
    throw new Failure('notFound', 'node_not_found', 'This account has no node with this id or name.', {
      next: 'boltyard nodes list',
    })
  return found[0].id
}
