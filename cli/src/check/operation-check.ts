import { checkCredentials } from './credential-check.ts'
import { type LiveOffer, price } from './dialects/offer.ts'
import { WWW_AUTHENTICATE } from './dialects/offers.ts'
import { type Discovery, linkedDocuments } from './discovery/discovery.ts'
import type { Operation } from './discovery/operation.ts'
import type { Findings, Note } from './findings.ts'
import { checkCaching, checkDate, checkExposedChallenge, checkPreflight, checkTls, ORIGIN, usesCors } from './headers.ts'
import type { Answer, Visit } from './visit.ts'
import type { Visits } from './visits.ts'

/** A free operation has no offers. */
export type CheckedOperation = { operation: Operation; status: number; offers: LiveOffer[] }

export async function checkOperation(
  operation: Operation,
  discovery: Discovery,
  visits: Visits,
  findings: Findings,
): Promise<CheckedOperation> {
  const note = findings.of(operation.name)
  const what = { method: operation.method, url: operation.url }
  const answer = await visits.send(what)
  if (answer.status !== 402) {
    judgeStatus(operation, answer, findings)
    return { operation, status: answer.status, offers: [] }
  }
  const before = findings.list.length
  const offers = visits.offersOf(answer, what, note)
  // If there are new findings, they already say why there is no offer.
  if (offers.length === 0 && findings.list.length === before) note('no-offer', 'HTTP 402 without a challenge for Lightning')
  checkCaching(answer, note)
  checkDate(answer, note)
  checkTls(operation.url, note)
  compareWithDiscovery(operation, answer, offers, discovery, note)
  await checkOtherVisits(what, offers, visits, note)
  await checkCredentials(what, offers, visits, note)
  await checkLinks(answer, operation.url, visits, note)
  return { operation, status: answer.status, offers }
}

function judgeStatus({ name, method, advertised, isGuessed }: Operation, { status }: Answer, findings: Findings): void {
  const note = findings.of(name)
  if (status >= 500) return note('server-error', `HTTP ${status}`)
  if (advertised.length === 0) return
  if (status >= 200 && status < 300) return note('not-charged', `HTTP ${status} without payment`)
  const isOurs = isGuessed
    ? 'a path parameter has no example'
    : method === 'GET' || method === 'HEAD'
      ? undefined
      : 'it was sent with an empty body'
  if (isOurs !== undefined && [400, 404, 411, 415, 422].includes(status)) findings.skip(name, `HTTP ${status}: ${isOurs}.`)
  else note('unexpected-status', `HTTP ${status}`)
}

/** Distinguishes a missing challenge from an unusable one, which was already reported. */
const SCHEMES = { mpp: /\bPayment\b/i, l402: /\b(L402|LSAT)\b/i }

function compareWithDiscovery(
  { advertised, isListed, is402Declared }: Operation,
  answer: Answer,
  offers: LiveOffer[],
  { nodeKey }: Discovery,
  note: Note,
): void {
  // x402 has nothing like x-payment-info (MPP) or l402.json (L402), so declaring the 402 response is enough.
  const isEnough = is402Declared && offers.every(({ protocol }) => protocol === 'x402')
  if (isListed && advertised.length === 0 && !isEnough) note('unadvertised-charge', 'HTTP 402')
  for (const { source, protocol, amountMsat } of advertised) {
    const live = offers.find((offer) => offer.protocol === protocol)
    if (!live && !SCHEMES[protocol].test(answer.header(WWW_AUTHENTICATE)))
      note('discovery-offer-missing', `${source} advertises ${protocol}, but the 402 does not offer it`)
    else if (live && amountMsat !== undefined && live.amountMsat !== amountMsat)
      note('discovery-price', `${source} advertises ${price(amountMsat)}, the ${protocol} invoice has ${price(live.amountMsat)}`)
  }
  const stranger = offers.find(({ protocol, signer }) => protocol === 'l402' && signer !== undefined && signer !== nodeKey)
  if (nodeKey !== undefined && stranger) note('discovery-node-key', `an invoice signed by ${stranger.signer}`, nodeKey)
}

async function checkLinks(answer: Answer, url: URL, visits: Visits, note: Note): Promise<void> {
  for (const target of linkedDocuments(answer.header('link'), url)) {
    const { status } = await visits.send({ method: 'GET', url: target })
    if (status < 200 || status > 299) note('discovery-link', `${target.pathname}: HTTP ${status}`)
  }
}

/** A second buyer, a browser, and HEAD. */
async function checkOtherVisits(what: Visit, offers: LiveOffer[], visits: Visits, note: Note): Promise<void> {
  const second = { ...what, headers: { origin: ORIGIN } }
  const answer = await visits.send(second)
  if (answer.status === 402) visits.offersOf(answer, second, note)
  else note('server-error', `HTTP ${answer.status} on the second visit`)
  checkExposedChallenge(answer, note)

  const credentialHeaders = [...new Set(offers.flatMap(({ present }) => Object.keys(present(''))))]
  const preflight = await visits.send({
    method: 'OPTIONS',
    url: what.url,
    headers: {
      origin: ORIGIN,
      'access-control-request-method': what.method,
      'access-control-request-headers': credentialHeaders.join(','),
    },
  })
  if (preflight.status === 402) note('options-charged', 'OPTIONS got HTTP 402')
  else if (usesCors(answer)) checkPreflight(preflight, credentialHeaders, note)

  if (what.method !== 'GET') return
  const head = { ...what, method: 'HEAD' }
  const { status } = await visits.send(head)
  if (status !== 402) note('head-status', `HEAD got HTTP ${status}, GET 402`)
}
