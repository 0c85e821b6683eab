import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { readConfig } from './src/config.ts'
import { buildApp } from './src/http/app.ts'
import type { AppDeps } from './src/http/deps.ts'
import { createLogger } from './src/platform/log.ts'

/** docs/openapi.json is made of the very schemas that check requests; `--check` only says whether it is current. */
const PATH = fileURLToPath(new URL('../docs/openapi.json', import.meta.url))

// Nothing is called while the routes are described, so no store has to be there.
const unused = undefined as never
const parts: AppDeps = {
  config: readConfig({}),
  sql: unused,
  keys: unused,
  signIn: unused,
  links: unused,
  nodes: unused,
  wallets: unused,
  payments: unused,
  validation: unused,
  deliveries: unused,
  topUps: unused,
  settlements: unused,
  // Anything but undefined: the sandbox calls are part of the document.
  hub: {} as never,
  lookUpNode: unused,
  operatorToken: 'described, not served',
  appDirectory: '',
  masterKeyId: '',
  isStopping: () => false,
  logger: await createLogger('silent'),
}
const app = await buildApp(parts)
const text = `${JSON.stringify(app.swagger(), null, 2)}\n`
await app.close()
if (process.argv.includes('--check')) {
  if (text !== readFileSync(PATH, 'utf8')) {
    process.stderr.write('docs/openapi.json is not current: npm run openapi\n')
    process.exit(1)
  }
} else writeFileSync(PATH, text)
