import { randomBytes } from 'node:crypto'
import { type Invoice, invoiceExpiresAtSeconds } from '../../../protocol/src/bolt11.ts'
import { issueL402 } from '../../../protocol/src/l402.ts'
import { issueMpp, type MppHeader } from '../../../protocol/src/mpp.ts'
import {
  issueX402,
  type X402Binding,
  X402Refusal,
  type X402Resource,
  x402NetworkOf,
  x402Requirements,
} from '../../../protocol/src/x402.ts'
import { judgeInvoice } from '../../../protocol/src/x402-checks.ts'
import type { Config } from '../config.ts'
import { isNodeKey, isSignedBy } from '../lightning/invoice-signature.ts'
import { type CheckedInvoice, expiryOf, invoiceFrom, oddInvoice } from '../lightning/invoices.ts'
import { crashpoint } from '../platform/crashpoint.ts'
import { newId } from '../platform/ids.ts'
import type { NodeAddress } from '../platform/node-agent.ts'
import { primitives } from '../platform/primitives.ts'
import type { AskableNode } from '../settlements/askable-node.ts'
import type { NewPayment, Protocol } from '../store/payments/payments.ts'
import type { ProtocolKeys } from './protocol-keys.ts'

export type X402Params = Omit<X402Binding, 'requestBindingParams'> & { resource: X402Resource; requestBindingParams: object }

/** Options, by protocol. */
export type ProtocolOptions = { mpp?: { header: MppHeader }; x402?: X402Params }

export type NewTerms = ProtocolOptions & { nodeId: string; amountSat: number; description: string; resource?: string }

/** What we need to know about a node that receives a payment. */
export type PayableNode = AskableNode & {
  accountId: string
  isDeleted: boolean
  isReady: boolean
  lightningId: string
  /** The current time by the database's clock. */
  nowMs: number
}
export type ReadyNode = PayableNode & { address: NodeAddress }

export type IssuerDeps = {
  config: Config
  network: Invoice['network']
  protocolKeys: ProtocolKeys
  /** Called if the node returns no invoice, or one that does not match the request. */
  reportSilence: (nodeId: string) => void
}

const INVOICE_TIMEOUT_MS = 5_000

/** Everything except storing the payment. An invoice that is created and then dropped does no harm, because no one has seen it. */
export async function preparePayment(
  deps: IssuerDeps,
  { accountId, actor }: { accountId: string; actor: string },
  terms: NewTerms,
  protocol: Protocol,
  node: ReadyNode,
): Promise<NewPayment> {
  const { nodeId, amountSat, description, resource = null } = terms
  const { config, protocolKeys } = deps
  const id = newId('pay')
  // An invoice must not outlive its credential, or a customer could pay for nothing.
  const lifetimeSeconds =
    protocol === 'l402' ? Math.min(config.challengeLifetimeSeconds, config.l402LifetimeSeconds) : config.challengeLifetimeSeconds
  const invoice = await invoiceFrom(
    { address: node.address, password: node.password(), network: deps.network },
    {
      amountSat,
      description,
      ...(protocol === 'x402' && terms.x402 ? { descriptionHash: terms.x402.requestHash } : {}),
      expirySeconds: lifetimeSeconds,
      externalId: id,
      webhookUrl: `${config.nodeCallbackUrl}/internal/settled/${nodeId}`,
    },
    INVOICE_TIMEOUT_MS,
  ).catch((error: unknown) => {
    deps.reportSilence(nodeId)
    throw error
  })
  crashpoint('payment: invoice made')
  const createdSeconds = Math.floor(node.nowMs / 1000)
  const soonestSeconds = expiryOf(invoice, createdSeconds, lifetimeSeconds)
  // x402 clients read the expiry from the invoice, so our clock must not change it.
  const expiresAtSeconds = protocol === 'x402' ? invoiceExpiresAtSeconds(invoice) : soonestSeconds
  const tokenId = protocol === 'l402' ? randomBytes(32) : null
  const made = { id, invoice, createdSeconds, expiresAtSeconds, lifetimeSeconds, tokenId }
  return {
    id,
    accountId,
    nodeId,
    protocol,
    amountSat,
    description,
    resource,
    challenge: protocol === 'x402' ? x402Challenge(terms, made, node) : challengeOf(deps, terms, made),
    paymentHash: Buffer.from(invoice.paymentHash, 'hex'),
    protocolKeyId: protocolKeys.current.id,
    tokenId,
    createdAtMs: node.nowMs,
    createdBy: actor,
    expiresAtSeconds,
  }
}

type Made = {
  id: string
  invoice: CheckedInvoice
  createdSeconds: number
  expiresAtSeconds: number
  lifetimeSeconds: number
  /** L402 only. */
  tokenId: Buffer | null
}

function challengeOf({ config, protocolKeys }: IssuerDeps, terms: NewTerms, made: Made): string {
  const { amountSat, description, mpp } = terms
  const { id, invoice, tokenId } = made
  const key = protocolKeys.current
  if (tokenId) {
    const validUntilSeconds = made.createdSeconds + config.l402LifetimeSeconds
    const paymentHash = Buffer.from(invoice.paymentHash, 'hex')
    const issued = { paymentId: id, paymentHash, tokenId, validUntilSeconds, invoice: invoice.serialized }
    return issueL402(primitives, key.rootKeyOf(id), issued)
  }
  const { network, paymentHash } = invoice
  if (network === 'testnet') throw oddInvoice('MPP does not define this network')
  const issued = { amountSat, description, paymentId: id, invoice: invoice.serialized, network, paymentHash }
  return issueMpp(primitives, key.mpp, new URL(config.publicUrl).host, issued, made.expiresAtSeconds, mpp?.header)
}

/** x402 clients make the same check (`judgeInvoice`) before they pay, so an invoice that fails it must not be sent. */
function x402Challenge({ x402, amountSat, description }: NewTerms, made: Made, { lightningId, nowMs }: ReadyNode): string {
  const { invoice, lifetimeSeconds } = made
  const network = x402NetworkOf(invoice.network)
  if (!x402 || network === undefined) throw oddInvoice('x402 does not define this network')
  const { resource, requestHash, requestBindingProfile, requestBindingParams } = x402
  const requirements = x402Requirements({
    network,
    amountSat,
    nodeKey: lightningId,
    expirySeconds: lifetimeSeconds,
    requestHash,
    requestBindingProfile,
    requestBindingParams: { ...requestBindingParams },
    invoice: invoice.serialized,
  })
  const context = { nowSeconds: Math.floor(nowMs / 1000), isNodeKey, isSignedBy }
  const judged = judgeInvoice(invoice.serialized, requirements, context)
  if (judged instanceof X402Refusal) throw oddInvoice(judged.errorReason)
  return issueX402({ description, ...resource }, requirements)
}
