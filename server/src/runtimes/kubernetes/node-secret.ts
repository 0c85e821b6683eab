import { CannotStart, TryAgain } from '../../nodes/runtime.ts'
import type { NodeObjects } from './node-objects.ts'
import { PATHS, secretName, secretOf } from './objects.ts'
import type { Secret } from './types.ts'

/** The name of the Secret with exactly these files. The Secret is immutable, so a changed configuration gets a new one. */
export async function ensureSecret(
  { client, place }: NodeObjects,
  nodeId: string,
  files: { seed: string; conf: string },
): Promise<string> {
  for (let number = 0; ; number++) {
    const name = secretName(nodeId, number)
    const wanted = secretOf(place, nodeId, name, files)
    const path = PATHS.secrets(place.namespace)
    const found = (await client.get<Secret>(`${path}/${name}`)) ?? (await client.create(path, wanted))
    // Another process created it between the two calls.
    if (!found) throw new TryAgain(`the Secret ${name} has just been created`)
    if (found.data?.['seed.dat'] !== wanted.data['seed.dat'])
      throw new CannotStart(`its Secret ${name} contains a different seed`)
    if (found.data['phoenix.conf'] === wanted.data['phoenix.conf']) return name
  }
}
