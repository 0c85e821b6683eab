import type { Operation } from '../operation.ts'
import { NoParams } from '../schemas.ts'
import {
  changeWebhook,
  createWebhook,
  deleteWebhook,
  getWebhook,
  listDeliveries,
  listWebhooks,
  redeliverEvent,
  replayEvents,
  rotateWebhookSecret,
  testWebhook,
} from '../webhooks.ts'

type Own<O extends Operation> = Omit<O, 'tag' | 'caller' | 'scope' | 'path' | 'operationId'> & {
  tag: 'Dashboard'
  caller: 'session'
  path: `/${string}`
  operationId: string
}

/** A call of the public API, made by a signed-in person instead of a key. */
function own<O extends Operation>({ scope: _, ...described }: O, operationId: string): Own<O> {
  const path: `/${string}` = `/dashboard/api${described.path.slice('/v1'.length)}`
  return { ...described, tag: 'Dashboard', caller: 'session', path, operationId } as Own<O>
}

export const createOwnWebhook = own(createWebhook, 'createOwnWebhook')
export const listOwnWebhooks = own(listWebhooks, 'listOwnWebhooks')
export const getOwnWebhook = own(getWebhook, 'getOwnWebhook')
export const changeOwnWebhook = own(changeWebhook, 'changeOwnWebhook')
export const deleteOwnWebhook = { ...own(deleteWebhook, 'deleteOwnWebhook'), body: NoParams }
export const rotateOwnWebhookSecret = own(rotateWebhookSecret, 'rotateOwnWebhookSecret')
export const testOwnWebhook = own(testWebhook, 'testOwnWebhook')
export const listOwnDeliveries = own(listDeliveries, 'listOwnDeliveries')
export const redeliverOwnEvent = own(redeliverEvent, 'redeliverOwnEvent')
export const replayOwnEvents = own(replayEvents, 'replayOwnEvents')
