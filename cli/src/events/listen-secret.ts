import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { newSecret } from '../../../sdk/src/webhooks/signature.ts'
import { usage } from '../failure.ts'
import { readDocument, SecretFile, statePath } from '../files.ts'
import { sanitize } from '../terminal.ts'

/**
 * The secret that `listen` signs with. It is kept, so that a receiver does not have to be configured again for each run. It is not the
 * secret of a webhook, because the service returns that only once.
 */
export function listenSecret(): string {
  const path = join(statePath(), 'listen.json')
  const document = readDocument(path)
  if (document === undefined) return createSecret(path)
  const { secret } = document
  if (typeof secret !== 'string')
    throw usage(`${sanitize(path)} contains no signing secret.`, 'Delete the file to get a new one.')
  return secret
}

function createSecret(path: string): string {
  mkdirSync(statePath(), { recursive: true, mode: 0o700 })
  const secret = newSecret()
  SecretFile.create(path, 'the signing secret', { secret })
  return secret
}
