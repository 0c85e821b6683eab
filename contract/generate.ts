import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { openApiDocument } from './src/openapi.ts'
import { publicOperations } from './src/operations.ts'
import { typesOf } from './src/typescript.ts'

/** Writes what is made of the contract; `--check` only says whether it is current. */

const SERVERS = [{ url: 'http://127.0.0.1:8402', description: 'A Boltyard on this machine.' }]
const HEADER = `// Generated from contract/ by \`npm run openapi\`: change the contract, not this file.
/* Times are Unix seconds, amounts whole satoshis. */

`
const FILES = {
  'docs/openapi.json': `${JSON.stringify(openApiDocument(publicOperations, SERVERS), null, 2)}\n`,
  'sdk/src/types.ts': HEADER + typesOf(publicOperations.filter(({ caller }) => caller === 'apiKey')),
}

for (const [name, text] of Object.entries(FILES)) {
  const path = fileURLToPath(new URL(`../${name}`, import.meta.url))
  if (!process.argv.includes('--check')) writeFileSync(path, text)
  else if (text !== readFileSync(path, 'utf8')) {
    process.stderr.write(`${name} is not current: npm run openapi\n`)
    process.exitCode = 1
  }
}
