import { Boltyard } from '../../sdk/src/index.ts'
import { Failure, usage } from './failure.ts'
import { readSecret } from './files.ts'
import { firstRunFile, firstRunKey } from './local.ts'

/** Disables the SDK's own limits, because `Call` decides how long to wait for a rate limit and when to time out. */
const NO_LIMIT_MS = 86_400_000

export type ClientOptions = { text: (option: string) => string | undefined; baseUrl: string; fetch: typeof fetch }

export function readKey(call: Pick<ClientOptions, 'text' | 'baseUrl'>): string {
  const file = call.text('api-key-file')
  const { SERVICE_API_KEY, BOLTYARD_API_KEY } = process.env
  const apiKey =
    file === undefined
      ? (SERVICE_API_KEY || BOLTYARD_API_KEY)?.trim() || firstRunKey(call.baseUrl)
      : readSecret(file, 'the API key')
  if (!apiKey)
    throw new Failure(
      'key',
      'no_api_key',
      'No API key: SERVICE_API_KEY and BOLTYARD_API_KEY are not set, and --api-key-file was not given.',
      {
        next: [
          'Create a key in the dashboard under Developers > API keys.',
          `For a service on this machine, the key in ${firstRunFile()} is used if you can read that file. If it is elsewhere, set DATA_DIR.`,
        ],
      },
    )
  return apiKey
}

export function openClient(call: ClientOptions): Boltyard {
  const apiKey = readKey(call)
  try {
    return new Boltyard({ apiKey, baseUrl: call.baseUrl, fetch: call.fetch, totalTimeoutMs: NO_LIMIT_MS })
  } catch (error) {
    if (error instanceof TypeError) throw usage(error.message)
    throw error
  }
}
