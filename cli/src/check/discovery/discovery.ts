import { randomUUID } from 'node:crypto'
import { isObject } from '../../../../protocol/src/bytes.ts'
import { objectIn } from '../../files.ts'
import type { Findings } from '../findings.ts'
import { type Answer, NoAnswer, type Visit } from '../visit.ts'
import { RateLimited } from '../visits.ts'
import { nodeKeyIn, resourcesIn } from './l402-json.ts'
import { operationsIn } from './openapi.ts'
import { merged, type Operation } from './operation.ts'

/** Scripts rely on these words. */
export type DocumentStatus = 'found' | 'absent' | 'invalid'
export type DiscoveryDocument = { path: string; status: DocumentStatus }
export type Discovery = { documents: DiscoveryDocument[]; operations: Operation[]; nodeKey: string | undefined }

export type Visiting = (visit: Visit) => Promise<Answer>

const OPENAPI = '/openapi.json'
const L402_JSON = '/.well-known/l402.json'
const LLMS = '/llms.txt'

/** `link` is the Link header of a 402 at `url`. It may name another path for openapi.json. */
export async function discover(url: URL, link: string, visiting: Visiting, findings: Findings): Promise<Discovery> {
  const { origin } = url
  const usual = await read(OPENAPI, 'paths')
  const [linked] = usual.status === 'absent' ? linkedDocuments(link, url, /\bservice-desc\b/i) : []
  const openapi = linked && linked.pathname !== OPENAPI ? await read(linked.pathname + linked.search, 'paths') : usual
  const l402 = await read(L402_JSON, 'services')
  const llms = await read(LLMS)
  return {
    documents: [openapi, l402, llms].map(({ path, status }) => ({ path, status })),
    operations: merged([
      ...(openapi.document ? operationsIn(openapi.document, origin, findings) : []),
      ...(l402.document ? resourcesIn(l402.document, origin, findings) : []),
    ]),
    nodeKey: l402.document && nodeKeyIn(l402.document),
  }

  /** A paywall in front of every path also charges for documents that do not exist. */
  async function isEverythingCharged(): Promise<boolean> {
    const { status } = await visiting({ method: 'GET', url: new URL(`/${randomUUID()}`, origin) })
    return status === 402
  }

  async function read(path: string, member?: string): Promise<DiscoveryDocument & { document?: Record<string, unknown> }> {
    const note = findings.of(path)
    const invalid = (why: string): DiscoveryDocument => {
      note('discovery-malformed', why)
      return { path, status: 'invalid' }
    }
    try {
      const answer = await visiting({ method: 'GET', url: new URL(path, origin), readsBody: true })
      if (answer.status === 402) {
        if (await isEverythingCharged()) return { path, status: 'absent' }
        note('discovery-charged', 'HTTP 402')
        return { path, status: 'invalid' }
      }
      if (answer.status >= 500) return invalid(`HTTP ${answer.status}`)
      // A web application often responds with its page for every path.
      if (answer.status !== 200 || /\bhtml\b/i.test(answer.header('content-type'))) return { path, status: 'absent' }
      if (member === undefined) return { path, status: 'found' }
      if (/\byaml\b/i.test(answer.header('content-type'))) {
        findings.skip(path, 'It is YAML; only JSON is read.')
        return { path, status: 'absent' }
      }
      if (answer.isCut) return invalid('larger than 2 MB, or incomplete')
      const document = objectIn(answer.body)
      const value = document?.[member]
      if (!document || !(isObject(value) || Array.isArray(value)))
        return invalid(document ? `a document without “${member}”` : 'not a JSON object')
      return { path, status: 'found', document }
    } catch (error) {
      if (error instanceof RateLimited) {
        findings.cutShort('limit', path)
        return { path, status: 'invalid' }
      }
      if (!(error instanceof NoAnswer)) throw error
      note('no-answer', error.message)
      return { path, status: 'invalid' }
    }
  }
}

export function compareAdvertised({ name, advertised }: Operation, findings: Findings): void {
  const prices = advertised.filter(({ amountMsat }) => amountMsat !== undefined)
  if (new Set(prices.map(({ amountMsat }) => amountMsat)).size < 2) return
  const seen = prices.map(({ source, amountMsat = 0 }) => `${source} ${amountMsat / 1000} sat`).join(', ')
  findings.of(name)('discovery-contradiction', seen)
}

const DESCRIPTIONS = /\b(service-desc|describedby|service-meta|service-doc|payment)\b/i

/** The documents on the same server that the Link header of a 402 names as descriptions. */
export function linkedDocuments(link: string, url: URL, relations = DESCRIPTIONS): URL[] {
  const targets = [...link.matchAll(/<([^<>]*)>([^<]*)/g)].flatMap(([, target = '', parameters = '']) => {
    const [, rel = ''] = /;\s*rel\s*=\s*"?([^";]*)/i.exec(parameters) ?? []
    return relations.test(rel) && URL.canParse(target, url.href) ? [new URL(target, url)] : []
  })
  return targets.filter(({ origin }) => origin === url.origin).slice(0, 3)
}
