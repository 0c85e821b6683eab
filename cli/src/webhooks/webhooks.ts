import type { ChangeWebhookParams, CreateWebhookParams, Webhook } from '../../../sdk/src/index.ts'
import type { Call } from '../call.ts'
import { confirmDeletion } from '../confirmation.ts'
import { usage } from '../failure.ts'
import { nodeIdOf } from '../nodes/node-id.ts'
import { sanitize, sheet } from '../terminal.ts'
import { rowsOf, secretOf, tableOf, typesIn } from './webhook-view.ts'

export async function create(call: Call): Promise<void> {
  const params: CreateWebhookParams = { url: call.argument(0), ...(await settingsOf(call)) }
  const client = await call.client()
  const advice = [
    'The webhook may have been created. To check: boltyard webhooks list',
    'If it was, its secret cannot be retrieved. Get a new one: boltyard webhooks rotate <webhook>',
  ]
  const webhook = await call.change(advice, () => client.webhooks.create(params, { signal: call.signal }))
  call.ifUnread = `The secret of ${webhook.id} was not read. To get a new one: boltyard webhooks rotate ${webhook.id}`
  call.print(webhook, () => `${sheet(rowsOf(webhook, call.paint), call.paint)}\n${secretOf(webhook.secret, call)}`)
}

export async function list(call: Call): Promise<void> {
  const webhooks = await (await call.client()).webhooks.list({ signal: call.signal })
  call.print({ webhooks }, () =>
    webhooks.length === 0 ? 'No webhooks yet. Create one: boltyard webhooks create <url>\n' : tableOf(webhooks, call.paint),
  )
}

export async function get(call: Call): Promise<void> {
  show(call, await (await call.client()).webhooks.get(call.argument(0), { signal: call.signal }))
}

export async function update(call: Call): Promise<void> {
  const id = call.argument(0)
  const params = await changesOf(call)
  if (Object.keys(params).length === 0) throw usage('No change was given.', 'boltyard webhooks update --help')
  const client = await call.client()
  const advice = `The webhook may have been changed. To check: boltyard webhooks get ${sanitize(id)}`
  show(call, await call.change(advice, () => client.webhooks.update(id, params, { signal: call.signal })))
}

export async function remove(call: Call): Promise<void> {
  const id = call.argument(0)
  const client = await call.client()
  const read = async (): Promise<{ value: string; consequences: string }> => {
    const { url } = await client.webhooks.get(id, { signal: call.signal })
    return { value: id, consequences: `${id} will be deleted. No more events will be sent to ${url}.` }
  }
  await confirmDeletion(call, { what: 'webhook', id, field: 'id', read })
  const advice = 'The webhook may have been deleted. To check: boltyard webhooks list'
  await call.change(advice, () => client.webhooks.delete(id, { signal: call.signal }))
  call.print({ id, deleted: true }, () => `Deleted ${sanitize(id)}.\n`)
}

export async function rotate(call: Call): Promise<void> {
  const [id, graceSeconds = 0] = [call.argument(0), call.number('grace-seconds')]
  const client = await call.client()
  const again = `boltyard webhooks rotate ${sanitize(id)}`
  const advice = [
    'The secret may have been replaced, and the new one cannot be retrieved.',
    `Rotate it again, and give the receiver the secret at once, because the old one may no longer sign: ${again}`,
  ]
  const { secret } = await call.change(advice, () => client.webhooks.rotateSecret(id, { graceSeconds }, { signal: call.signal }))
  call.ifUnread = `The new secret of ${sanitize(id)} was not read. To get another: ${again}`
  call.print({ id, secret }, () => secretOf(secret, call))
}

async function settingsOf(call: Call): Promise<Pick<ChangeWebhookParams, 'types' | 'nodeIds' | 'description'>> {
  const [types, description] = [call.text('types'), call.text('description')]
  const nodeIds = new Set<string>()
  for (const node of call.many('node')) nodeIds.add(await nodeIdOf(call, node))
  return {
    ...(types === undefined ? {} : { types: typesIn(types) }),
    ...(nodeIds.size === 0 ? {} : { nodeIds: [...nodeIds] }),
    ...(description === undefined ? {} : { description: description || null }),
  }
}

async function changesOf(call: Call): Promise<ChangeWebhookParams> {
  refuseBoth('types', 'all-types', call.text('types') !== undefined && call.flag('all-types'))
  refuseBoth('node', 'all-nodes', call.many('node').length > 0 && call.flag('all-nodes'))
  refuseBoth('enable', 'disable', call.flag('enable') && call.flag('disable'))
  const url = call.text('url')
  return {
    ...(url === undefined ? {} : { url }),
    ...(await settingsOf(call)),
    ...(call.flag('all-types') ? { types: null } : {}),
    ...(call.flag('all-nodes') ? { nodeIds: null } : {}),
    ...(call.flag('enable') || call.flag('disable') ? { enabled: call.flag('enable') } : {}),
  }
}

function refuseBoth(one: string, other: string, areGiven: boolean): void {
  if (areGiven) throw usage(`--${one} cannot be combined with --${other}.`)
}

function show(call: Call, webhook: Webhook): void {
  call.print(webhook, () => sheet(rowsOf(webhook, call.paint), call.paint))
}
