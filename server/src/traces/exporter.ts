import { type ExportResult, ExportResultCode } from '@opentelemetry/core'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import type { ReadableSpan, SpanExporter } from '@opentelemetry/sdk-trace'
import type { Config } from '../config.ts'
import type { Logger } from '../platform/log.ts'

const TIMEOUT_MS = 5_000

/** Logs when the collector can no longer be reached, and when it can again; by itself, the library would drop spans silently. */
export class Exporter implements SpanExporter {
  readonly #otlp: OTLPTraceExporter
  readonly #log: Logger
  #isFailing = false

  constructor({ url, headers }: NonNullable<Config['traces']>, log: Logger) {
    this.#otlp = new OTLPTraceExporter({ url, headers, timeoutMillis: TIMEOUT_MS })
    this.#log = log
  }

  export(spans: ReadableSpan[], done: (result: ExportResult) => void): void {
    this.#otlp.export(spans, (result) => {
      this.#note(result)
      done(result)
    })
  }

  #note({ code, error }: ExportResult): void {
    const isFailing = code !== ExportResultCode.SUCCESS
    if (isFailing && !this.#isFailing)
      this.#log.warn({ err: error }, 'cannot export traces; they are dropped until it works again')
    if (!isFailing && this.#isFailing) this.#log.info('traces are exported again')
    this.#isFailing = isFailing
  }

  shutdown(): Promise<void> {
    return this.#otlp.shutdown()
  }
}
