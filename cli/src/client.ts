import { Boltyard } from '../../sdk/src/index.ts'
import type { Call } from './call.ts'
import { Failure, usage } from './failure.ts'
import { readSecret } from './files.ts'

export function readKey(call: Call): string {
  const file = call.text('api-key-file')
  const apiKey = file === undefined ? process.env.SERVICE_API_KEY?.trim() : readSecret(file, 'the API key')
  if (!apiKey)
    throw new Failure('key', 'no_api_key', 'No API key: SERVICE_API_KEY is not set, and there is no --api-key-file.', {
      next: [
        'Keys are made in the dashboard: Developers, then API Keys.',
        'On a laptop the first start made one: it is "apiKey" in first-run.json in the data directory.',
      ],
    })
  return apiKey
}

export function openClient(call: Call): Boltyard {
  const apiKey = readKey(call)
  try {
    return new Boltyard({ apiKey, baseUrl: call.baseUrl, fetch: call.fetch })
  } catch (error) {
    if (error instanceof TypeError) throw usage(error.message)
    throw error
  }
}
