import type { Call } from '../call.ts'
import { Failure, usage } from '../failure.ts'
import { exitOf } from '../pay/present.ts'
import { httpUrlIn } from '../pay/request.ts'
import { sandboxWallet } from '../sandbox.ts'
import { sanitize, shellWord } from '../terminal.ts'
import { sleep } from '../waiting.ts'
import { compareAdvertised, discover } from './discovery/discovery.ts'
import { merged, type Operation } from './discovery/operation.ts'
import { Findings, type Skipped } from './findings.ts'
import { type CheckedOperation, checkOperation } from './operation-check.ts'
import { Purchases, type SandboxWallet } from './purchase.ts'
import { documentOf, forPeople } from './view.ts'
import { type Answer, NoAnswer } from './visit.ts'
import { RateLimited, Visits } from './visits.ts'

const MAX_REDIRECTS = 5
const MAX_OPERATIONS = 50
/** Operations bought per run. Each costs up to nine visits per offer. */
const MAX_BOUGHT = 10
/** After this time, or this many operations in a row without a response, the rest is skipped. Otherwise, a slow server could take hours. */
const BUDGET_MS = 300_000
const MAX_UNANSWERED = 3

export async function check(call: Call): Promise<void> {
  const given = httpUrlIn(call.argument(0))
  const wallet = call.flag('pay-sandbox') ? sandboxWallet(call) : undefined
  const findings = new Findings()
  const visits = new Visits(call.signal, (text) => call.spinner.show(text))
  const deadlineMs = Date.now() + BUDGET_MS

  const { url, answer } = await firstVisit(given, visits)
  const unknown = { advertised: [], isListed: false, is402Declared: false, isGuessed: false }
  const here: Operation = { name: `GET ${url.pathname}`, method: 'GET', url, ...unknown }
  // The offers are checked later, with their operation. Here, only their invoices are remembered.
  if (answer.status === 402) visits.offersOf(answer, here, () => undefined)
  const discovery = await discover(url, answer.header('link'), (what) => visits.send(what), findings)
  const operations = callable(merged([...discovery.operations, ...(answer.status === 402 ? [here] : [])]), findings)
  if (operations.length === 0 && findings.list.length === 0) throw nothingToCheck(url, answer.status, findings.skipped)

  const checked: CheckedOperation[] = []
  let unanswered = 0
  for (const operation of operations) {
    if (unanswered >= MAX_UNANSWERED) findings.skip(operation.name, 'The server has stopped responding.')
    else if (Date.now() > deadlineMs) findings.cutShort('time', operation.name)
    else {
      compareAdvertised(operation, findings)
      const done = await guarded(operation, findings, () => checkOperation(operation, discovery, visits, findings))
      unanswered = done === 'unanswered' ? unanswered + 1 : 0
      if (typeof done === 'object') checked.push(done)
    }
  }
  const purchases = wallet && (await buyAll(checked, visits, findings, wallet, call))
  const report = { url: url.href, documents: discovery.documents, checked, findings, purchases: purchases?.list ?? [] }
  call.print(documentOf(report), () => forPeople(report, call.paint))
  if (findings.list.length > 0) throw found(findings)
  if (findings.cutShortBy === 'limit')
    throw new Failure('rateLimited', 'incomplete', 'The check is incomplete: the server returned HTTP 429.', {
      next: 'Try again later.',
    })
  if (findings.cutShortBy === 'time')
    throw new Failure('network', 'incomplete', 'The check is incomplete: it took longer than 5 minutes.')
}

/** Follows redirects on the same server only, because all later requests are sent to the final address. */
async function firstVisit(given: URL, visits: Visits): Promise<{ url: URL; answer: Answer }> {
  let url = given
  for (let hops = 0; hops <= MAX_REDIRECTS; hops++) {
    const answer = await visits.send({ method: 'GET', url }).catch((error) => {
      if (error instanceof NoAnswer)
        throw new Failure('network', 'connection_failed', `${url.host} did not respond. ${error.message}.`, { cause: error })
      throw error instanceof RateLimited
        ? new Failure('rateLimited', 'rate_limited', `${url.host} returned HTTP 429.`, { next: 'Try again later.' })
        : error
    })
    const location = answer.header('location')
    if (answer.status < 300 || answer.status > 399 || location === '') return { url, answer }
    const target = URL.canParse(location, url.href) ? new URL(location, url) : undefined
    if (!target || !/^https?:$/.test(target.protocol))
      throw new Failure('other', 'bad_redirection', 'The server redirects to an invalid address.')
    if (target.origin !== url.origin)
      throw usage(
        `${url.host} redirects to another server: ${sanitize(target.origin)}`,
        `boltyard check ${shellWord(target.href)}`,
      )
    target.hash = ''
    url = target
  }
  throw new Failure('other', 'bad_redirection', `The server redirects more than ${MAX_REDIRECTS} times.`)
}

/** What may be called without asking the user: GET and HEAD, and operations advertised as paid, which do nothing unless paid for. */
function callable(operations: Operation[], findings: Findings): Operation[] {
  const safe = operations.filter(({ name, method, advertised, isGuessed }) => {
    if (advertised.length > 0 || (['GET', 'HEAD'].includes(method) && !isGuessed)) return true
    findings.skip(
      name,
      isGuessed ? 'A path parameter has no example.' : `${method} may change something, and is not advertised as paid.`,
    )
    return false
  })
  if (safe.length > MAX_OPERATIONS)
    findings.skip(`${safe.length - MAX_OPERATIONS} operations`, `Only the first ${MAX_OPERATIONS} are checked.`)
  const rank = ({ advertised }: Operation): number => (advertised.length > 0 ? 0 : 1)
  return safe.toSorted((one, other) => rank(one) - rank(other)).slice(0, MAX_OPERATIONS)
}

async function guarded<T>({ name }: Operation, findings: Findings, act: () => Promise<T>): Promise<T | 'unanswered' | 'limited'> {
  try {
    return await act()
  } catch (error) {
    if (error instanceof RateLimited) {
      findings.cutShort('limit', name)
      return 'limited'
    }
    if (!(error instanceof NoAnswer)) throw error
    findings.of(name)('no-answer', error.message)
    return 'unanswered'
  }
}

async function buyAll(
  checked: CheckedOperation[],
  visits: Visits,
  findings: Findings,
  wallet: SandboxWallet,
  call: Call,
): Promise<Purchases> {
  const purchases = new Purchases(visits, findings, wallet, (ms) => sleep(ms, call.signal))
  const sold = checked.filter(({ offers }) => offers.length > 0)
  const bought = sold.filter(({ operation }) => operation.method === 'GET')
  for (const { operation } of sold.filter((one) => !bought.includes(one)))
    findings.skip(operation.name, 'Not paid: only GET operations are bought.')
  if (bought.length > MAX_BOUGHT)
    findings.skip(`${bought.length - MAX_BOUGHT} operations`, `Not paid: only the first ${MAX_BOUGHT} are bought.`)
  const priceOf = ({ offers }: CheckedOperation): number => offers[0]?.amountMsat ?? 0
  const dearest = bought.toSorted((one, other) => priceOf(other) - priceOf(one))[0]
  for (const one of bought.slice(0, MAX_BOUGHT))
    await guarded(one.operation, findings, () =>
      purchases.buy(one, dearest && priceOf(dearest) > priceOf(one) ? dearest : undefined),
    )
  return purchases
}

function nothingToCheck(url: URL, status: number, skipped: Skipped[]): Failure {
  const exit = exitOf(status)
  if (exit)
    return new Failure(
      exit,
      'nothing_to_check',
      `The server returned HTTP ${status}, and its discovery documents list nothing that can be checked.`,
      {
        details: { status },
      },
    )
  const [first] = skipped
  const why = first ? `Skipped: ${first.operation}: ${first.reason}` : 'Give the URL of something that is sold.'
  return usage(
    `${sanitize(url.href)} does not ask for payment, and its discovery documents list nothing that can be checked.`,
    why,
  )
}

function found({ list }: Findings): Failure {
  const errors = list.filter(({ severity }) => severity === 'error').length
  const warnings = list.length - errors
  const count = (number: number, what: string): string[] => (number === 0 ? [] : [`${number} ${what}${number === 1 ? '' : 's'}`])
  return new Failure(
    'findings',
    'findings',
    `${[...count(errors, 'error'), ...count(warnings, 'warning')].join(' and ')} found.`,
    {
      details: { errors, warnings },
    },
  )
}
