import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { openApiDocument } from './src/openapi.ts'
import { publicOperations } from './src/operations.ts'
import { typesOf } from './src/typescript.ts'

/** Generates openapi.json and the SDK's types from the contract. With `--check`, only reports whether they are up to date. */

const SERVERS = [{ url: 'http://127.0.0.1:8402', description: 'Boltyard on this machine.' }]
const HEADER = `// Generated from contract/ by \`npm run openapi\`. Edit the contract, not this file.
/* Times are in Unix seconds, amounts in whole satoshis. */

`
const forKeys = publicOperations.filter(({ caller }) => caller === 'apiKey')
const FILES = {
  'docs/openapi.json': `${JSON.stringify(openApiDocument(publicOperations, SERVERS), null, 2)}\n`,
  'sdk/src/types.ts': `${HEADER}export type * from './gateway-types.ts'\n\n${typesOf(forKeys.filter(({ tag }) => tag !== 'Webhooks' && tag !== 'Gateway'))}`,
  'sdk/src/gateway-types.ts': HEADER + typesOf(forKeys.filter(({ tag }) => tag === 'Gateway')),
  'sdk/src/webhooks/types.ts': HEADER + typesOf(forKeys.filter(({ tag }) => tag === 'Webhooks')),
}

for (const [name, text] of Object.entries(FILES)) {
  const path = fileURLToPath(new URL(`../${name}`, import.meta.url))
  if (!process.argv.includes('--check')) writeFileSync(path, text)
  else if (text !== readFileSync(path, 'utf8')) {
    process.stderr.write(`${name} is out of date. Run npm run openapi.\n`)
    process.exitCode = 1
  }
}
