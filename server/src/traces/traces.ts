import { AsyncLocalStorage } from 'node:async_hooks'
import { type Attributes, type Context, ROOT_CONTEXT, type Span, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import { parseTraceParent } from '@opentelemetry/core'
import { resourceFromAttributes } from '@opentelemetry/resources'
import { BatchSpanProcessor, ParentBasedSampler, TraceIdRatioBasedSampler, TracerProvider } from '@opentelemetry/sdk-trace'
import type { Config } from '../config.ts'
import type { Logger } from '../platform/log.ts'
import { nodeCallProbe, requestProbe, statementProbe, stepProbe } from '../platform/probes.ts'
import { Exporter } from './exporter.ts'

/** The request or reconciler step in progress. Calls to nodes and statements become children of its span. */
type Scope = { span: Span; context: Context }

/**
 * Exports a span for every request and reconciler step, and below it one for each call to a node and each statement. Returns a
 * function that exports the remaining spans and stops. A span contains patterns and fixed words, and the id of the request;
 * nothing else that a client sent.
 */
export function startTraces(settings: NonNullable<Config['traces']>, log: Logger): () => Promise<void> {
  const provider = new TracerProvider({
    resource: resourceFromAttributes({ 'service.name': settings.serviceName }),
    sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(settings.ratio) }),
    spanProcessors: [new BatchSpanProcessor({ exporter: new Exporter(settings, log) })],
  })
  const tracer = provider.getTracer('boltyard')
  const scopes = new AsyncLocalStorage<Scope>()

  const begin = (name: string, kind: SpanKind, traceparent?: string): Scope => {
    const remote = traceparent === undefined ? null : parseTraceParent(traceparent)
    const parent = remote ? trace.setSpanContext(ROOT_CONTEXT, { ...remote, isRemote: true }) : ROOT_CONTEXT
    const span = tracer.startSpan(name, { kind }, parent)
    return { span, context: trace.setSpan(parent, span) }
  }
  const end = (span: Span, attributes: Attributes, isFailed: boolean): void => {
    span.setAttributes(attributes)
    if (isFailed) span.setStatus({ code: SpanStatusCode.ERROR })
    span.end()
  }
  /** A call outside a request or step has no span that it could belong to, so it is not recorded. */
  const addChild = (name: string, seconds: number, attributes: Attributes, isFailed: boolean): void => {
    const scope = scopes.getStore()
    if (!scope?.span.isRecording()) return
    const startTime = Date.now() - seconds * 1000
    end(tracer.startSpan(name, { kind: SpanKind.CLIENT, startTime }, scope.context), attributes, isFailed)
  }

  const watches = [
    requestProbe.bind(scopes, ({ traceparent }) => begin('request', SpanKind.SERVER, traceparent)),
    requestProbe.watch(({ method, route, status, requestId }) => {
      const span = scopes.getStore()?.span
      span?.updateName(`${method} ${route}`)
      const attributes = {
        'http.request.method': method,
        'http.route': route,
        'http.response.status_code': status,
        'boltyard.request_id': requestId,
      }
      if (span) end(span, attributes, status >= 500)
    }),
    stepProbe.bind(scopes, () => begin('reconcile a node', SpanKind.INTERNAL)),
    stepProbe.watch(({ result }) => {
      const span = scopes.getStore()?.span
      if (span) end(span, { 'boltyard.result': result }, result === 'failed')
    }),
    nodeCallProbe.watch(({ call, result, seconds }) =>
      addChild(`node ${call}`, seconds, { 'boltyard.result': result }, result !== '2xx'),
    ),
    statementProbe.watch(({ text, seconds, isFailed }) =>
      addChild(text.trim().split(/\s/, 1)[0] ?? '', seconds, { 'db.system.name': 'postgresql', 'db.query.text': text }, isFailed),
    ),
  ]
  return async () => {
    for (const unwatch of watches) unwatch()
    await provider.shutdown()
  }
}
