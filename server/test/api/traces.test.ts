import { beforeAll, describe, expect, test } from 'vitest'
import { openReceiver, type Receiver } from '../../../testing/receiver.ts'
import { readConfig } from '../../src/config.ts'
import { startOf } from '../../src/http/hooks/measure.ts'
import { charge, credentialOf, newMerchant, pay, redeem } from '../support/gateway.ts'
import type { Created } from '../support/nodes.ts'
import { eventually, freePort, PROCESS, startServer } from '../support/server.ts'

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const CALLER = '00f067aa0ba902b7'
const ENDPOINT = 'http://127.0.0.1:4318'

type Span = {
  traceId: string
  spanId: string
  parentSpanId?: string
  name: string
  startTimeUnixNano: string
  endTimeUnixNano: string
  attributes: { key: string; value: Record<string, unknown> }[]
}

/** Spans as the collector received them, in OTLP's JSON. */
function spansIn({ received }: Receiver): Span[] {
  return received.flatMap(({ body }) =>
    JSON.parse(body).resourceSpans.flatMap((resource: { scopeSpans: { spans: Span[] }[] }) =>
      resource.scopeSpans.flatMap(({ spans }) => spans),
    ),
  )
}

const attributesOf = ({ attributes }: Span): Record<string, unknown> =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]))

describe('traces', () => {
  let collector: Receiver
  let spans: Span[]
  let created: Created
  /** What must not be in a trace. */
  let secrets: string[]
  let requestId: string

  beforeAll(async () => {
    collector = await openReceiver((response) => response.writeHead(200, { 'content-type': 'application/json' }).end('{}'))
    const server = await startServer({
      command: PROCESS,
      env: {
        OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${collector.port}`,
        OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20of-the-collector',
        TRUST_PROXY: '1',
      },
    })
    const merchant = await newMerchant(server)
    created = await merchant.createReady()
    const payment = await charge(merchant, created)
    const preimage = await pay(server, payment)
    await redeem(merchant, payment.id, credentialOf(payment, preimage))
    const traceparent = `00-${TRACE}-${CALLER}-01`
    const answer = await merchant.send('GET', '/nodes/node_00000000000000000000', { headers: { traceparent } })
    requestId = String(answer.headers['x-request-id'])
    await server.send('GET', `/n/${created.node.id}/getinfo`)
    secrets = [merchant.key.key, created.node.id, payment.id, preimage, ...Object.values(created.credentials).map(String)]
    // Stopping exports what is left.
    await server.stop()
    spans = spansIn(collector)
  })

  const named = (name: string): Span[] => spans.filter((span) => span.name === name)
  const childrenOf = (parent: Span | undefined): Span[] =>
    spans.filter(({ traceId, parentSpanId }) => traceId === parent?.traceId && parentSpanId === parent.spanId)

  test('a request continues the trace of a trusted proxy, and names its route, status and id', () => {
    const span = named('GET /v1/nodes/:nodeId').find(({ traceId }) => traceId === TRACE)
    expect(span?.parentSpanId).toBe(CALLER)
    expect(span && attributesOf(span)).toEqual({
      'http.request.method': 'GET',
      'http.route': '/v1/nodes/:nodeId',
      'http.response.status_code': 404,
      'boltyard.request_id': requestId,
    })
  })

  test('calls to the node and statements belong to the request that made them, and lie within it', () => {
    const [request] = named('POST /v1/gateway/payments')
    const children = childrenOf(request)
    expect(children.map(({ name }) => name)).toEqual(expect.arrayContaining(['node createinvoice', 'INSERT']))
    for (const { startTimeUnixNano } of children) {
      // The start of a child span is measured in whole milliseconds.
      expect(Number(startTimeUnixNano)).toBeGreaterThan(Number(request?.startTimeUnixNano) - 5e6)
      expect(Number(startTimeUnixNano)).toBeLessThan(Number(request?.endTimeUnixNano))
    }
    const texts = children.map((span) => attributesOf(span)['db.query.text']).filter((text) => text !== undefined)
    expect(texts.join('\n')).toContain('gateway_payments')
  })

  test('each step of the reconciler has a separate trace, and so has each request through a node’s address', () => {
    const calls = named('reconcile a node').flatMap(childrenOf)
    expect(calls.map(({ name }) => name)).toContain('node getinfo')
    expect(named('GET (node)').map((span) => attributesOf(span)['http.response.status_code'])).toContain(401)
  })

  test('every span has ended in a trace whose root is a request or a step', () => {
    const roots = spans.filter(({ parentSpanId }) => parentSpanId === undefined || parentSpanId === '' || parentSpanId === CALLER)
    expect(new Set(roots.map(({ name }) => name.replace(/^[A-Z]+ .*/, 'request')))).toEqual(
      new Set(['request', 'reconcile a node']),
    )
    expect(named('request')).toEqual([])
  })

  test('no span contains a key, a password, a seed, a preimage or the id of a node or payment', () => {
    const text = collector.received.map(({ body }) => body).join('\n')
    expect(secrets.length).toBeGreaterThan(6)
    for (const secret of secrets) expect(text).not.toContain(secret)
    expect(collector.received.map(({ headers, path }) => [headers.authorization, path])).toContainEqual([
      'Bearer of-the-collector',
      '/v1/traces',
    ])
  })
})

test('without a collector the service works, says so once, and stops', async () => {
  const server = await startServer({
    command: PROCESS,
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${await freePort()}` },
  })
  const warnings = (): string[] => server.stderr.match(/cannot export traces/g) ?? []
  expect((await server.send('GET', '/readyz')).status).toBe(200)
  await eventually(() => warnings().length > 0, 'the first export to fail')
  expect((await server.send('GET', '/readyz')).status).toBe(200)
  // Stopping exports again, which fails too.
  await server.stop()
  expect(warnings()).toHaveLength(1)
})

test('without a trusted proxy, a client cannot choose the ids of traces', () => {
  const request = { headers: { traceparent: `00-${TRACE}-${CALLER}-01` } } as unknown as Parameters<typeof startOf>[0]
  expect(startOf(request, false)).toEqual({ traceparent: undefined })
  expect(startOf(request, 1)).toEqual({ traceparent: `00-${TRACE}-${CALLER}-01` })
})

describe('settings', () => {
  const traces = (env: Record<string, string>) => readConfig({ OTEL_EXPORTER_OTLP_ENDPOINT: ENDPOINT, ...env }).traces

  test('there are no traces unless an endpoint is set', () => {
    expect(readConfig({ OTEL_SERVICE_NAME: 'shop', OTEL_TRACES_SAMPLER_ARG: '0.5' }).traces).toBeUndefined()
    expect(traces({})).toEqual({ url: `${ENDPOINT}/v1/traces`, headers: {}, ratio: 1, serviceName: 'boltyard' })
  })

  test('headers are read as OpenTelemetry specifies them', () => {
    const headers = (text: string) => traces({ OTEL_EXPORTER_OTLP_HEADERS: text })?.headers
    expect(headers('a=1, b-c = x%3D%2C ,')).toEqual({ a: '1', 'b-c': 'x=,' })
    expect(headers('authorization=Basic dXNlcg==')).toEqual({ authorization: 'Basic dXNlcg==' })
  })

  test('wrong values are refused, without showing them', () => {
    const refused = (env: Record<string, string>): string => {
      try {
        return JSON.stringify(traces(env))
      } catch (error) {
        return String(error)
      }
    }
    for (const text of ['a', '=secret', 'a=%zzsecret', 'a b=secret', 'a=secret%0A'])
      expect(refused({ OTEL_EXPORTER_OTLP_HEADERS: text })).toMatch(/^(?!.*secret).*OTEL_EXPORTER_OTLP_HEADERS/s)
    for (const ratio of ['2', '-1', 'x', '1.5', '.5'])
      expect(refused({ OTEL_TRACES_SAMPLER_ARG: ratio })).toContain('OTEL_TRACES_SAMPLER_ARG')
    expect(refused({ OTEL_EXPORTER_OTLP_ENDPOINT: 'ftp://x' })).toContain('OTEL_EXPORTER_OTLP_ENDPOINT')
  })
})
