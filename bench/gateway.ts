import { type ChildProcess, fork } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { issueL402 } from '../protocol/src/l402.ts'
import { issueMpp, mppCredential, mppReceipt } from '../protocol/src/mpp.ts'
import { readChallenges } from '../protocol/src/www-authenticate.ts'
import { ProtocolKeys } from '../server/src/gateway/protocol-keys.ts'
import { newId } from '../server/src/platform/ids.ts'
import { primitives } from '../server/src/platform/primitives.ts'
import { masterKeyOf } from '../server/src/platform/secrets.ts'
import type { Sql } from '../server/src/store/db.ts'
import { killDaemons, Service } from '../testing/service.ts'
import type { Ceiling } from './ceiling.ts'
import type { Load, LoadResult } from './load.ts'
import { cpuSeconds, type Measure, median, quantile, timed } from './measure.ts'

const CALLERS = 64

export type Payment = { id: string; credential: string; validate: string; redeem: string }
const accountOf = ({ dataDir }: Service): string => JSON.parse(readFileSync(join(dataDir, 'first-run.json'), 'utf8')).accountId

export const program = (name: string, env: Record<string, string> = {}): ChildProcess =>
  fork(fileURLToPath(new URL(name, import.meta.url)), {
    execArgv: name.endsWith('.ts') ? ['--import', 'tsx'] : [],
    env: { ...process.env, ...env },
  })

/** Sends a message to the child process and returns its response. One call at a time. */
export function ask<T>(child: ChildProcess, question: unknown): Promise<T> {
  return new Promise((resolve, reject) => {
    const gone = (code: number | null): void => reject(new Error(`a helper of the bench exited with ${code}`))
    child.once('exit', gone)
    child.once('message', (answer) => {
      child.off('exit', gone)
      resolve(answer as T)
    })
    child.send(question as object)
  })
}

const post = (path: string, key: string, body: unknown): string => {
  const text = JSON.stringify(body)
  return `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`
}

/**
 * Settled payments like those the service creates, with their customers' credentials. All have the same invoice, so that the
 * node does not have to create thousands.
 */
export async function settledPayments(
  service: Service,
  sql: Sql,
  nodeId: string,
  invoice: string,
  count: number,
  protocol: 'mpp' | 'l402' = 'mpp',
): Promise<Payment[]> {
  const master = masterKeyOf(Buffer.from(readFileSync(join(service.dataDir, 'master.key'), 'utf8'), 'base64'))
  const { current } = await ProtocolKeys.open(sql, master, undefined)
  const expires = Math.floor(Date.now() / 1000) + 300
  const rows = Array.from({ length: count }, () => {
    const id = newId('pay')
    const [preimage, tokenId] = [randomBytes(32), randomBytes(32)]
    const paymentHash = createHash('sha256').update(preimage).digest()
    const hash = paymentHash.toString('hex')
    if (protocol === 'l402') {
      const terms = { paymentId: id, paymentHash, tokenId, validUntilSeconds: expires + 86_400, invoice }
      const challenge = issueL402(primitives, current.rootKeyOf(id), terms)
      return { id, preimage, hash, challenge, receipt: null, token: tokenId.toString('hex') }
    }
    const terms = { amountSat: 100, description: 'bench', paymentId: id, invoice, network: 'regtest' as const, paymentHash: hash }
    const challenge = issueMpp(primitives, current.mpp, new URL(service.url).host, terms, expires)
    return { id, preimage, hash, challenge, receipt: mppReceipt(challenge, paymentHash, Date.now()), token: null }
  })
  await sql`
    INSERT INTO gateway_payments (id, account_id, node_id, protocol, amount_sat, description, resource, challenge, payment_hash,
                                  protocol_key_id, token_id, created_at, expires_at, settled_at, receipt)
    SELECT id, ${accountOf(service)}, ${nodeId}, ${protocol}, 100, 'bench', 'GET /bench', challenge, decode(hash, 'hex'), ${current.id},
           decode(token, 'hex'), now(), to_timestamp(${expires}), now(), receipt
    FROM unnest(${rows.map(({ id }) => id)}::text[], ${rows.map(({ challenge }) => challenge)}::text[],
                ${rows.map(({ hash }) => hash)}::text[], ${rows.map(({ receipt }) => receipt)}::text[],
                ${rows.map(({ token }) => token)}::text[]) AS made (id, challenge, hash, receipt, token)`
  return rows.map(({ id, preimage, challenge }) => {
    // Not built with readOffers, because all payments share an invoice that belongs to none of them.
    const echoed = Object.fromEntries(readChallenges(challenge)?.[0]?.params ?? [])
    const proof = preimage.toString('hex')
    const credential = protocol === 'l402' ? `L402 ${echoed.macaroon}:${proof}` : mppCredential(echoed, proof)
    const expect = { nodeId, resource: 'GET /bench', minAmountSat: 100 }
    return {
      id,
      credential,
      validate: post(`/v1/gateway/payments/${id}/validate`, service.key, { credential }),
      redeem: post(`/v1/gateway/payments/${id}/redeem`, service.key, { credential, requestId: id, expect, holdSeconds: 120 }),
    }
  })
}

/** CPU time of the service and the PostgreSQL it started, including backends and background writers. */
export function cpuMs(service: Service): number {
  const tree = [service.pid]
  const parents = new Map<number, number>()
  for (const name of readdirSync('/proc').filter((entry) => /^\d+$/.test(entry))) {
    try {
      parents.set(Number(name), Number(readFileSync(`/proc/${name}/stat`, 'utf8').split(') ')[1]?.split(' ')[1]))
    } catch {
      // The process has exited in the meantime.
    }
  }
  for (const pid of tree) for (const [child, parent] of parents) if (parent === pid && isOurs(child)) tree.push(child)
  return tree.reduce((sum, pid) => sum + cpuSeconds(pid), 0) * 1000
}

/** Nodes are child processes too, but have no part in a redemption. */
const isOurs = (pid: number): boolean => readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('postgres')

/** Requests that confirm the redeemed payments, each with as many as one call accepts. */
function batches(service: Service, payments: Payment[]): string[] {
  return Array.from({ length: Math.ceil(payments.length / 100) }, (_, at) => {
    const deliveries = payments.slice(at * 100, at * 100 + 100).map(({ id }) => ({ id, requestId: id }))
    return post('/v1/gateway/payments/delivered', service.key, { deliveries })
  })
}

/** Ratios are taken within one round, so that the machine was equally fast for both sides. */
async function validations(service: Service, nodeId: string, invoice: string, quick: boolean): Promise<Measure[]> {
  const [bare, loader, updater] = [program('bare.ts'), program('load.ts'), program('ceiling.ts')]
  const sql = service.store(4)
  const port = Number(new URL(service.url).port)
  const connection = service.connection
  const load = async (wanted: Load): Promise<LoadResult> => {
    const result = await ask<LoadResult>(loader, wanted)
    if (Object.keys(result.statuses).join() !== '200') throw new Error(`expected 200: ${JSON.stringify(result.statuses)}`)
    return result
  }
  const barePort = await new Promise<number>((resolve) => bare.once('message', (value) => resolve(value as number)))
  // Fewer than the cache holds, so that repeated validations find their entry.
  const count = quick ? 1_500 : 3_000
  // Many short rounds: the speed of the machine changes within seconds, and a ratio is taken within one round.
  const rounds = quick ? 4 : 15
  // Rounds that do not count, until the engine has compiled the measured code.
  const warmUps = quick ? 3 : 2
  const perRound: { bare: number; update: number; narrow: number; first: number; repeated: number; repeatedL402: number }[] = []
  const redeemMs: number[] = []
  const deliveredMs: number[] = []
  const ceiling = (work: Omit<Ceiling, 'connection' | 'callers'>): Promise<number> =>
    ask<number>(updater, { connection, callers: CALLERS, ...work } satisfies Ceiling)
  const firstMs: number[] = []
  const repeatedMs: number[] = []
  for (let round = -warmUps; round < rounds; round++) {
    const [payments, forCeiling] = [
      await settledPayments(service, sql, nodeId, invoice, count),
      await settledPayments(service, sql, nodeId, invoice, count),
    ]
    await sql`CHECKPOINT`
    const bareRequests = payments.map(({ validate }) => validate.replace(/^POST \S+/, 'POST /'))
    const requests = payments.map(({ validate }) => validate)
    const bareResult = await load({ port: barePort, callers: CALLERS, requests: bareRequests })
    const ids = forCeiling.map(({ id }) => id)
    const update = await ceiling({ ids })
    const first = await load({ port, callers: CALLERS, requests })
    const repeated = await load({ port, callers: CALLERS, requests })
    await sql`INSERT INTO paid_payments (account_id, id, actor) SELECT account_id, id, 'bench' FROM gateway_payments WHERE id = ANY (${ids})`
    const narrow = await ceiling({ ids, accountId: accountOf(service) })
    const l402 = await settledPayments(service, sql, nodeId, invoice, count, 'l402')
    const l402Requests = l402.map(({ validate }) => validate)
    await load({ port, callers: CALLERS, requests: l402Requests })
    const repeatedL402 = await load({ port, callers: CALLERS, requests: l402Requests })
    const forShop = await settledPayments(service, sql, nodeId, invoice, count)
    const beforeRedeem = cpuMs(service)
    await load({ port, callers: CALLERS, requests: forShop.map(({ redeem }) => redeem) })
    const beforeDelivered = cpuMs(service)
    await load({ port, callers: 2, requests: batches(service, forShop) })
    const afterDelivered = cpuMs(service)
    if (round < 0) continue
    redeemMs.push((beforeDelivered - beforeRedeem) / count)
    deliveredMs.push((afterDelivered - beforeDelivered) / count)
    perRound.push({
      bare: bareResult.perSecond,
      update,
      narrow,
      first: first.perSecond,
      repeated: repeated.perSecond,
      repeatedL402: repeatedL402.perSecond,
    })
    firstMs.push(...first.latenciesMs)
    repeatedMs.push(...repeated.latenciesMs)
  }
  const of = (value: (round: (typeof perRound)[number]) => number): number => median(perRound.map(value))
  /**
   * Half as many callers, each sending its next request as soon as the last was answered. Three runs, because a pause of the
   * machine could decide the result of a single one.
   */
  const halfLoad = async (name: string, requests: string[]): Promise<Measure[]> => {
    const third = Math.ceil(requests.length / 3)
    const runs: { middle: number; p99: number }[] = []
    for (let from = 0; from < requests.length; from += third) {
      const { latenciesMs } = await load({ port, callers: CALLERS / 2, requests: requests.slice(from, from + third) })
      runs.push({ middle: median(latenciesMs), p99: quantile(latenciesMs, 0.99) })
    }
    const ratio = median(runs.map(({ middle, p99 }) => p99 / middle))
    return [
      { name: `${name}, ${CALLERS / 2} callers: median`, value: median(runs.map(({ middle }) => middle)), unit: 'ms' },
      { name: '  p99', value: median(runs.map(({ p99 }) => p99)), unit: 'ms' },
      { name: '  p99 / median', value: ratio, unit: '×', target: { op: '≤', value: 5 } },
    ]
  }
  /**
   * Requests arrive on a fixed schedule, even while others wait: this shows what a pause of the machine costs, in our server and in a bare
   * one.
   */
  const steady = async (name: string, to: number, perSecond: number, requests: string[]): Promise<Measure[]> => {
    const { latenciesMs } = await load({ port: to, callers: CALLERS, requests, perSecond })
    return [
      { name: `${name}, ${Math.round(perSecond)} /s: median`, value: median(latenciesMs), unit: 'ms' },
      { name: '  p99', value: quantile(latenciesMs, 0.99), unit: 'ms' },
    ]
  }
  const fresh = async (): Promise<string[]> =>
    (await settledPayments(service, sql, nodeId, invoice, count)).map(({ validate }) => validate)
  const closed = await fresh()
  await sql`CHECKPOINT`
  const steadyPerSecond = of((round) => round.first) / 2
  const measures: Measure[] = [
    { name: 'bare Fastify POST, 64 callers', value: of((round) => round.bare), unit: '/s' },
    { name: 'bare UPDATE … RETURNING of a payment, 64 callers', value: of((round) => round.update), unit: '/s' },
    { name: 'bare UPDATE … RETURNING of a narrow row, 64 callers', value: of((round) => round.narrow), unit: '/s' },
    { name: 'first validation, 64 callers', value: of((round) => round.first), unit: '/s' },
    {
      name: '  of the bare UPDATE of a payment',
      value: of(({ first, update }) => first / update),
      unit: '×',
      target: { op: '≥', value: 0.5 },
    },
    { name: '  of the one of a narrow row', value: of(({ first, narrow }) => first / narrow), unit: '×' },
    { name: '  p99', value: quantile(firstMs, 0.99), unit: 'ms' },
    { name: 'repeated validation, 64 callers', value: of((round) => round.repeated), unit: '/s' },
    {
      name: '  of the bare POST',
      value: of((round) => round.repeated / round.bare),
      unit: '×',
      target: { op: '≥', value: 0.35 },
    },
    { name: '  p99', value: quantile(repeatedMs, 0.99), unit: 'ms' },
    { name: 'repeated validation of L402, 64 callers', value: of((round) => round.repeatedL402), unit: '/s' },
    {
      name: '  of the bare POST',
      value: of((round) => round.repeatedL402 / round.bare),
      unit: '×',
      target: { op: '≥', value: 0.5 },
    },
    { name: 'first redemption, held: CPU of service and PostgreSQL', value: median(redeemMs), unit: 'ms' },
    { name: 'its confirmation, 100 at a time: the same', value: median(deliveredMs), unit: 'ms' },
    ...(await halfLoad('first validation', closed)),
    ...(await halfLoad('repeated validation', closed)),
  ]
  if (!quick) {
    const open = await fresh()
    await sql`CHECKPOINT`
    const bareRequests = open.map((request) => request.replace(/^POST \S+/, 'POST /'))
    measures.push(
      ...(await steady('first validation', port, steadyPerSecond, open)),
      ...(await steady('repeated validation', port, steadyPerSecond, open)),
      ...(await steady('bare Fastify POST', barePort, steadyPerSecond, bareRequests)),
    )
  }
  for (const child of [bare, loader, updater]) child.kill()
  await sql.end()
  return measures
}

/** The same node, called alternately: directly and through the gateway. */
async function creations(service: Service, nodeId: string, password: string, quick: boolean): Promise<Measure[]> {
  const direct: number[] = []
  const created: number[] = []
  const authorization = `Basic ${Buffer.from(`:${password}`).toString('base64')}`
  const { port } = JSON.parse(readFileSync(join(service.dataDir, 'run', nodeId, 'run.json'), 'utf8'))
  const form = (): URLSearchParams =>
    new URLSearchParams({
      amountSat: '100',
      description: 'bench',
      expirySeconds: '300',
      externalId: newId('pay'),
      webhookUrl: `${service.url}/internal/settled/${nodeId}`,
    })
  const rounds = quick ? 80 : 2_000
  for (let round = -20; round < rounds; round++) {
    const bareMs = await timed(async () => {
      const response = await fetch(`http://127.0.0.1:${port}/createinvoice`, {
        method: 'POST',
        headers: { authorization },
        body: form(),
      })
      await response.json()
    })
    const gatewayMs = await timed(async () => {
      const { status } = await service.call('POST', '/v1/gateway/payments', { nodeId, amountSat: 100, description: 'bench' })
      if (status !== 201) throw new Error(`create: ${status}`)
    })
    if (round < 0) continue
    direct.push(bareMs)
    created.push(gatewayMs)
  }
  return [
    { name: 'createinvoice of the node itself: median', value: median(direct), unit: 'ms' },
    { name: 'create a payment: median', value: median(created), unit: 'ms' },
    { name: '  over the node itself', value: median(created) - median(direct), unit: 'ms', target: { op: '≤', value: 3 } },
    { name: 'create a payment: p99', value: quantile(created, 0.99), unit: 'ms' },
  ]
}

export async function benchGateway(quick: boolean): Promise<Measure[]> {
  const dataDir = mkdtempSync(join(tmpdir(), 'boltyard-bench-'))
  const service = new Service(dataDir)
  try {
    await service.start()
    const { body } = await service.call('POST', '/v1/nodes')
    await service.untilReady(body.node.id)
    // The sign-in library is loaded some seconds after the start, which is not part of a creation.
    if (!quick) await new Promise((resolve) => setTimeout(resolve, 5_000))
    const measures = await creations(service, body.node.id, body.credentials.password, quick)
    const made = await service.call('POST', '/v1/gateway/payments', {
      nodeId: body.node.id,
      amountSat: 100,
      description: 'bench',
      protocol: 'l402',
    })
    const invoice = /invoice="([^"]+)"/.exec(made.body.challenge)?.[1] ?? ''
    return [...measures, ...(await validations(service, body.node.id, invoice, quick))]
  } finally {
    await service.stop()
    killDaemons(dataDir)
    rmSync(dataDir, { recursive: true, force: true })
  }
}
