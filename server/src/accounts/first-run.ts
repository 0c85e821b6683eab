import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from '../config.ts'
import { writeSecretFile } from '../platform/data-dir.ts'
import type { Output } from '../platform/log.ts'
import { listAccounts } from '../store/accounts.ts'
import type { Sql } from '../store/db.ts'
import { FIRST_RUN_KEY } from '../store/keys.ts'
import { hasSetting, settingOnce } from '../store/settings.ts'
import { createAccount, FIRST_ACCOUNT_NAME } from './accounts.ts'
import { type Keys, SCOPES } from './keys/keys.ts'
import type { Links } from './people/links.ts'

const DONE = 'first_run'

type FirstRun = { accountId: string; apiKey: string; claimUrl: string }

/**
 * Makes the service usable right after its first start: creates an account, an API key and a link to claim the account, and writes them to
 * a file. The database, not the file, records that this is done: an operator who has stored the key elsewhere may delete the file.
 */
export async function firstRun(sql: Sql, keys: Keys, links: Links, config: Config, output: Output): Promise<void> {
  const path = join(config.dataDir, FIRST_RUN_KEY)
  if (await hasSetting(sql, DONE)) return
  if (!(await isUsable(path, keys))) {
    // A crash may have left the account without its file.
    const left = (await listAccounts(sql, {})).find(({ name }) => name === FIRST_ACCOUNT_NAME)
    const first = {
      name: FIRST_ACCOUNT_NAME,
      creditSat: config.signupCreditSat,
      actor: 'first run',
      isSelfRegistered: false,
    }
    const account = left ?? (await createAccount(sql, first))
    const { key } = await keys.create(
      { accountId: account.id, actor: 'first run' },
      { name: FIRST_RUN_KEY, scopes: SCOPES },
      config.maxKeysPerAccount,
    )
    const { url: claimUrl } = await links.firstClaim(account.id)
    const content: FirstRun = { accountId: account.id, apiKey: key, claimUrl }
    writeSecretFile(path, `${JSON.stringify(content, null, 2)}\n`)
  }
  await settingOnce(sql, DONE, Buffer.from('done'))
  greet(path, config.publicUrl, output)
}

async function isUsable(path: string, keys: Keys): Promise<boolean> {
  if (!existsSync(path)) return false
  const { apiKey } = JSON.parse(readFileSync(path, 'utf8')) as FirstRun
  return (await keys.authenticate(apiKey)) !== undefined
}

/** Prints the key and the link only to a terminal: piped output ends up in log files. */
function greet(path: string, publicUrl: string, output: Output): void {
  const content = JSON.parse(readFileSync(path, 'utf8')) as FirstRun
  const isTerminal = output.isTTY
  const key = isTerminal ? content.apiKey : `$(node -p 'JSON.parse(require("fs").readFileSync("${path}")).apiKey')`
  output.write(
    `First start: account and API key are in ${path}\n  curl -X POST -H "Authorization: Bearer ${key}" ${publicUrl}/v1/nodes\n${
      isTerminal
        ? `To use the account in the dashboard, open this link within 30 days: ${content.claimUrl}\n`
        : 'To use the account in the dashboard, open its claimUrl in a browser within 30 days.\n'
    }`,
  )
}
