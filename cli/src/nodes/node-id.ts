import type { Call } from '../call.ts'
import { Failure, usage } from '../failure.ts'
import { harmless } from '../terminal.ts'

/** The id of a node given by id or by name. Several nodes may have one name; guessing which is meant could delete the wrong one. */
export async function nodeIdOf(call: Call, given: string): Promise<string> {
  if (given.startsWith('node_')) return given
  const nodes = await (await call.client()).nodes.list({ signal: call.signal })
  const found = nodes.filter(({ name }) => name === given)
  if (found.length > 1)
    throw usage(`${found.length} nodes are called ${harmless(given)}. Use an id.`, found.map(({ id }) => id).join(' '))
  if (!found[0])
    throw new Failure('notFound', 'node_not_found', 'This account has no node with that id or name.', {
      next: 'boltyard nodes list',
    })
  return found[0].id
}
