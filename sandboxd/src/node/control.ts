import { randomUUID } from 'node:crypto'
import type { Server } from 'node:http'
import { choiceOf, integerOf, jsonServer, RequestFault, type Route, stringOf, stringsOf } from '../json-server.ts'
import { parseDelivery } from './hub-link.ts'
import type { LightningNode } from './node.ts'

/** The faults an operator can simulate. */
export const FAULTS = ['none', 'crash', 'hang', 'peer_down', 'slow'] as const

const MAX_FUND_SAT = 9_007_199_254_740
const TEN_YEARS_SECONDS = 315_360_000

/**
 * Controls that must not be part of phoenixd's API: play money, faults, time travel, and the hub's deliveries. They have their own port and
 * token, so that the node's passwords do not give access and no proxy to the node can reach them.
 */
export function controlServer(node: LightningNode, token: string, onPeerChange: () => void, log: (line: string) => void): Server {
  const route = (method: Route['method'], path: string, handle: Route['handle']): Route => ({
    method,
    path: new RegExp(`^/${path}$`),
    token,
    handle,
  })
  const setPeer = async (up: boolean): Promise<void> => {
    if (node.ledger.conditions.peerUp === up) return
    await node.changeConditions({ peerUp: up })
    onPeerChange()
  }
  const state = () => ({
    nodeId: node.nodeId,
    balanceMsat: node.ledger.balanceMsat,
    pendingMsat: node.ledger.pendingMsat,
    feeCreditMsat: node.ledger.feeCreditMsat,
    nowMs: node.now(),
    peer: node.ledger.conditions.peerUp ? 'up' : 'down',
    feeCredit: node.ledger.conditions.feeCredit ? 'on' : 'off',
    answers: node.faults.answers,
    payments: node.faults.payments.mode,
    explorer: node.faults.explorer,
    otherChannels: node.faults.otherChannels,
  })
  const crash = (): never => {
    process.kill(process.pid, 'SIGKILL')
    throw new Error('unreachable: killed')
  }

  return jsonServer(
    [
      route('GET', 'state', state),
      route('POST', 'receive', ({ body }) => {
        const delivery = parseDelivery(body)
        if (!delivery) throw new RequestFault(400, 'the body is not a valid delivery')
        // A hanging process does not accept payments either; the hub times out and reports "unknown".
        return node.faults.until(() => node.faults.answers !== 'hang').then(() => node.receive(delivery))
      }),
      route('POST', 'fund', async ({ body }) => {
        const fundId = body.fundId === undefined ? randomUUID() : stringOf(body, 'fundId')
        const again = body.again === true
        const funded = await node.fund(fundId, integerOf(body, 'amountSat', 1, MAX_FUND_SAT) * 1000, again)
        if (funded) return { balanceSat: Math.floor(node.ledger.balanceMsat / 1000) }
        const refused = 'the balance would be larger than a node can hold'
        // Not a 409: older nodes respond with that to a repeat that they may still accept.
        if (again) return { refused }
        throw new RequestFault(409, refused)
      }),
      route('POST', 'clock', async ({ body }) => {
        const advanceSeconds = integerOf(body, 'advanceSeconds', 0, TEN_YEARS_SECONDS)
        // The limit is for the total, because an invoice's timestamp has 35 bits.
        if (!(await node.advanceClock(advanceSeconds, TEN_YEARS_SECONDS)))
          throw new RequestFault(400, 'the clock can be at most ten years ahead')
        return state()
      }),
      route('POST', 'peer', async ({ body }) => {
        await setPeer(choiceOf(body, 'peer', ['up', 'down']) === 'up')
        return state()
      }),
      route('POST', 'fee-credit', async ({ body }) => {
        await node.changeConditions({ feeCredit: choiceOf(body, 'feeCredit', ['on', 'off']) === 'on' })
        return state()
      }),
      route('POST', 'payments', ({ body }) => {
        const mode = choiceOf(body, 'payments', ['normal', 'hold', 'lose', 'fail'])
        node.faults.set({ payments: mode === 'fail' ? { mode, reason: stringOf(body, 'reason') } : { mode } })
        return state()
      }),
      route('POST', 'answers', ({ body }) => {
        node.faults.set({ answers: choiceOf(body, 'answers', ['normal', 'slow', 'hang']) })
        return state()
      }),
      route('POST', 'explorer', ({ body }) => {
        node.faults.set({ explorer: choiceOf(body, 'explorer', ['up', 'down']) })
        return state()
      }),
      route('POST', 'channels', ({ body }) => {
        node.faults.set({ otherChannels: stringsOf(body, 'others') })
        return state()
      }),
      route('POST', 'crash', crash),
      route('POST', 'fault', async ({ body }) => {
        const fault = choiceOf(body, 'fault', FAULTS)
        if (fault === 'crash') crash()
        node.faults.set({
          answers: fault === 'hang' || fault === 'slow' ? fault : 'normal',
          payments: { mode: 'normal' },
          explorer: 'up',
          otherChannels: [],
        })
        await setPeer(fault !== 'peer_down')
        return state()
      }),
    ],
    log,
  )
}
