import type { Call } from './call.ts'
import { sanitize, sheet } from './terminal.ts'

export async function key(call: Call): Promise<void> {
  const found = await (await call.client()).key({ signal: call.signal })
  call.print(found, () =>
    sheet(
      [
        ['key', sanitize(found.id)],
        ['account', sanitize(found.accountId)],
        ['scopes', sanitize(found.scopes.join(', '))],
        ['service', sanitize(call.baseUrl)],
      ],
      call.paint,
    ),
  )
}
