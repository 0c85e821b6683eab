import type { Invoice } from '../lightning/bolt11.ts'
import { namedFeatures } from '../lightning/bolt11.ts'
import type { Offer } from '../lightning/offer.ts'
import { deductedMsat, type Incoming, type Outgoing } from '../node/ledger.ts'
import type { LightningNode } from '../node/node.ts'
import { VERSION } from '../options.ts'
import { channelIdOf, fundingTxIdOf } from './channel.ts'

/** phoenixd's JSON objects with its fields in its order. Undefined fields are left out, and no field is ever null. */

const toSat = (msat: number): number => Math.floor(msat / 1000)

export function channels(node: LightningNode) {
  return [...node.faults.otherChannels.map((state) => ({ state })), ...ownChannel(node)]
}

function ownChannel(node: LightningNode) {
  const { capacitySat, balanceMsat, pendingMsat } = node.ledger
  if (capacitySat === null) return []
  if (node.channelIsOffline) return [{ state: 'Offline(Normal)' }]
  return [
    {
      state: 'Normal',
      channelId: channelIdOf(node.nodeId),
      balanceSat: toSat(balanceMsat),
      inboundLiquiditySat: Math.max(0, toSat(capacitySat * 1000 - balanceMsat - pendingMsat)),
      capacitySat,
      fundingTxId: fundingTxIdOf(node.nodeId),
    },
  ]
}

export function info(node: LightningNode) {
  return { nodeId: node.nodeId, channels: channels(node), chain: 'regtest', blockHeight: node.blockHeight, version: VERSION }
}

/** Offline channels are left out, so the balance is 0 while the peer is disconnected, as in phoenixd. */
export function balance(node: LightningNode) {
  const { balanceMsat, feeCreditMsat } = node.ledger
  return { balanceSat: node.channelIsOffline ? 0 : toSat(balanceMsat), feeCreditSat: toSat(feeCreditMsat) }
}

export function incomingPayment({ invoice, received }: Incoming, now: number) {
  const expiresAt = invoice.createdAtMs + invoice.expirySeconds * 1000
  return {
    type: 'incoming_payment',
    subType: 'lightning',
    paymentHash: invoice.paymentHash,
    preimage: invoice.preimage,
    externalId: invoice.externalId,
    description: invoice.description,
    invoice: invoice.serialized,
    isPaid: received !== undefined,
    isExpired: now > expiresAt,
    requestedSat: invoice.amountMsat === undefined ? undefined : toSat(invoice.amountMsat),
    receivedSat: received ? toSat(received.amountMsat - deductedMsat(received)) : 0,
    fees: received ? deductedMsat(received) : 0,
    expiresAt,
    completedAt: received?.atMs,
    createdAt: invoice.createdAtMs,
  }
}

export function outgoingPayment({ payment, end }: Outgoing) {
  const isPaid = end?.t === 'sent'
  return {
    type: 'outgoing_payment',
    subType: 'lightning',
    paymentId: payment.paymentId,
    paymentHash: payment.paymentHash,
    preimage: isPaid ? end.preimage : undefined,
    isPaid,
    sent: toSat(payment.amountMsat + (isPaid ? payment.feeMsat : 0)),
    fees: isPaid ? payment.feeMsat : 0,
    invoice: payment.invoice,
    completedAt: end?.atMs,
    createdAt: payment.createdAtMs,
  }
}

export function paymentSent({ payment }: Outgoing, preimage: string) {
  return {
    recipientAmountSat: toSat(payment.amountMsat),
    routingFeeSat: toSat(payment.feeMsat),
    paymentId: payment.paymentId,
    paymentHash: payment.paymentHash,
    paymentPreimage: preimage,
  }
}

export function decodedInvoice(invoice: Invoice) {
  return {
    chain: invoice.chain,
    amount: invoice.amountMsat,
    paymentHash: invoice.paymentHash,
    description: invoice.description,
    descriptionHash: invoice.descriptionHash,
    minFinalCltvExpiryDelta: invoice.minFinalCltvExpiryDelta,
    paymentSecret: invoice.paymentSecret,
    paymentMetadata: invoice.paymentMetadata,
    expirySeconds: invoice.expirySeconds,
    extraHops: invoice.extraHops,
    features: invoice.features.length > 0 ? namedFeatures(invoice.features) : undefined,
    timestampSeconds: invoice.timestampSeconds,
  }
}

export function decodedOffer(offer: Offer) {
  return {
    chain: 'regtest',
    chainHashes: offer.chainHashes.length > 0 ? offer.chainHashes : undefined,
    amount: offer.amountMsat,
    currency: offer.currency,
    issuer: offer.issuer,
    quantityMax: offer.quantityMax,
    description: offer.description,
    metadata: offer.metadata,
    expirySeconds: offer.expirySeconds,
    issuerId: offer.issuerId,
  }
}
