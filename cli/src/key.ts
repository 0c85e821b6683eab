import type { Call } from './call.ts'
import { harmless, sheet } from './terminal.ts'

export async function key(call: Call): Promise<void> {
  const found = await (await call.client()).key({ signal: call.signal })
  call.print(found, () =>
    sheet(
      [
        ['key', harmless(found.id)],
        ['account', harmless(found.accountId)],
        ['scopes', harmless(found.scopes.join(', '))],
        ['service', harmless(call.baseUrl)],
      ],
      call.paint,
    ),
  )
}
