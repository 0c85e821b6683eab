import { randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { encodeOffer } from '../lightning/offer.ts'
import { liquidityFees } from '../node/liquidity.ts'
import { type LightningNode, maxSendableMsat, type PayResult } from '../node/node.ts'
import { descriptionOf, expiryOf, flag, keptText, msatOf, newestFirst, pageOf, requestedMsat } from './arguments.ts'
import { channelIdOf, lightningAddressOf } from './channel.ts'
import { exportPayments } from './export.ts'
import { ApiFault, badRequest } from './faults.ts'
import { isRegtestAddress, type Lnurl, readLnurl } from './foreign.ts'
import { readForm, type Values, valuesIn } from './form.ts'
import { Parameters } from './parameters.ts'
import * as views from './views.ts'

export type Access = 'full' | 'limited'
/** A string is returned as text, anything else as JSON. */
export type Answer = string | object
export type Call = { query: Parameters; path: Parameters; form: () => Promise<Parameters> }
export type ApiRoute = { method: 'GET' | 'POST'; path: string; access: Access; handle: (call: Call) => Promise<Answer> | Answer }

export const NOT_FOUND = new ApiFault(404, 'Not found')
const MAX_EXTERNAL_ID_UTF16 = 256
const MAX_WEBHOOK_URL_UTF16 = 2_048
/** The largest amount of liquidity the peer sells. */
const MAX_LIQUIDITY_SAT = 1_000_000_000n

export function callOf(request: IncomingMessage, query: string, path: Values): Call {
  return {
    query: new Parameters(() => valuesIn(query)),
    path: new Parameters(() => path),
    form: async () => {
      const values = await readForm(request)
      return new Parameters(() => values)
    },
  }
}

/** All endpoints of phoenixd 0.8.0. Those that need other servers respond like phoenixd when it is offline. */
export function routesOf(node: LightningNode, dataDir: string): ApiRoute[] {
  const { ledger } = node
  const hasChannel = (): boolean => ledger.capacitySat !== null

  const overrideAmount = (form: Parameters): number | undefined => {
    if (form.has('sendAll') && form.has('amountSat')) throw badRequest('Cannot use both amountSat and sendAll request parameters')
    if (form.has('sendAll')) return hasChannel() && !node.channelIsOffline ? maxSendableMsat(ledger.balanceMsat) : undefined
    // An amount that is not positive fails later in the payment, with its own message.
    return msatOf(form.optionalLong('amountSat'))
  }
  const payView = (result: PayResult): object =>
    'sent' in result
      ? views.paymentSent(result.sent, result.preimage)
      : { paymentHash: result.paymentHash, reason: result.reason }
  const unreachableLnurl = (lnurl: Lnurl): ApiFault => badRequest(`could not connect to ${lnurl.host}`)

  return [
    { method: 'GET', path: '/getinfo', access: 'limited', handle: () => views.info(node) },
    { method: 'GET', path: '/getbalance', access: 'limited', handle: () => views.balance(node) },
    {
      method: 'GET',
      path: '/estimateliquidityfees',
      access: 'limited',
      handle: async ({ query }) => {
        const amountSat = query.long('amountSat')
        await node.faults.until(() => node.blockHeight !== undefined && !node.channelIsOffline)
        if (amountSat < 1n || amountSat > MAX_LIQUIDITY_SAT)
          throw badRequest(`no available funding rates for amount=${amountSat} sat`)
        return liquidityFees(Number(amountSat), hasChannel())
      },
    },
    {
      method: 'GET',
      path: '/listchannels',
      access: 'limited',
      handle: () =>
        views
          .channels(node)
          .map((channel) => ({ type: `fr.acinq.lightning.channel.states.${channel.state.split('(')[0]}`, ...channel })),
    },
    {
      method: 'POST',
      path: '/createinvoice',
      access: 'limited',
      handle: async ({ form }) => {
        const parameters = await form()
        const wantedSat = parameters.optionalLong('amountSat')
        const text = descriptionOf(parameters)
        const hash = parameters.optionalHex32('descriptionHash')
        if ((text === undefined) === (hash === undefined))
          throw badRequest('Must provide either a description or descriptionHash')
        const invoice = {
          description: hash === undefined ? { text: text ?? '' } : { hash: Buffer.from(hash, 'hex') },
          expirySeconds: expiryOf(parameters.optionalLong('expirySeconds')),
          amountMsat: requestedMsat(wantedSat),
        }
        const externalId = keptText(parameters, 'externalId', MAX_EXTERNAL_ID_UTF16)
        keptText(parameters, 'webhookUrl', MAX_WEBHOOK_URL_UTF16)
        let webhookUrl: string | undefined
        try {
          webhookUrl = parameters.optionalUrl('webhookUrl')
        } catch (error) {
          // phoenixd checks the URL after it has created the invoice: the caller gets an error, but the invoice exists.
          await node.createInvoice({ ...invoice, externalId: undefined, webhookUrl: undefined })
          throw error
        }
        const made = await node.createInvoice({ ...invoice, externalId, webhookUrl })
        const amountSat = made.amountMsat === undefined ? undefined : Math.floor(made.amountMsat / 1000)
        return { amountSat, paymentHash: made.paymentHash, serialized: made.serialized }
      },
    },
    {
      method: 'POST',
      path: '/createoffer',
      access: 'limited',
      handle: async ({ form }) => {
        const parameters = await form()
        const amountMsat = msatOf(parameters.optionalLong('amountSat'))
        const description = descriptionOf(parameters)
        if (amountMsat !== undefined && description === undefined)
          throw badRequest('Must provide a description if an amount is specified')
        return encodeOffer({
          nodeId: node.nodeId,
          metadata: randomBytes(16),
          ...(amountMsat === undefined || amountMsat < 0 ? {} : { amountMsat }),
          ...(description === undefined ? {} : { description }),
        })
      },
    },
    { method: 'GET', path: '/getoffer', access: 'limited', handle: () => encodeOffer({ nodeId: node.nodeId }) },
    {
      method: 'GET',
      path: '/getlnaddress',
      access: 'limited',
      handle: () => (hasChannel() ? lightningAddressOf(node.nodeId) : 'must have one channel'),
    },
    {
      method: 'GET',
      path: '/payments/incoming',
      access: 'limited',
      handle: ({ query }) => {
        const all = flag(query.optional('all'))
        const externalId = query.optional('externalId')
        const list = all ? ledger.incomingByCreation : ledger.incomingByReceipt
        const now = node.now()
        return newestFirst(
          list,
          ({ invoice, received }) => (all ? invoice.createdAtMs : (received?.atMs ?? 0)),
          query,
          now,
          ({ invoice }) => externalId === undefined || invoice.externalId === externalId,
        ).map((incoming) => views.incomingPayment(incoming, now))
      },
    },
    {
      method: 'GET',
      path: '/payments/incoming/:paymentHash',
      access: 'limited',
      handle: ({ path }) => {
        const incoming = ledger.incoming.get(path.hex32('paymentHash'))
        if (!incoming) throw NOT_FOUND
        return views.incomingPayment(incoming, node.now())
      },
    },
    {
      method: 'GET',
      path: '/payments/outgoing',
      access: 'limited',
      handle: ({ query }) => {
        const all = flag(query.optional('all'))
        const { from, to, limit, offset } = pageOf(query, node.now())
        return [...ledger.outgoing.values()]
          .filter(({ payment, end }) => {
            const atMs = all ? payment.createdAtMs : (end?.atMs ?? 0)
            return (all || end?.t === 'sent') && atMs >= from && atMs <= to
          })
          .slice(Math.max(0, offset), Math.max(0, offset) + limit)
          .map(views.outgoingPayment)
      },
    },
    {
      method: 'GET',
      path: '/payments/outgoing/:uuid',
      access: 'limited',
      handle: ({ path }) => {
        const outgoing = ledger.outgoing.get(path.uuid('uuid'))
        if (!outgoing) throw NOT_FOUND
        return views.outgoingPayment(outgoing)
      },
    },
    {
      method: 'GET',
      path: '/payments/outgoingbyhash/:paymentHash',
      access: 'limited',
      handle: ({ path }) => {
        const attempts = ledger.outgoingByHash.get(path.hex32('paymentHash')) ?? []
        const best = attempts.find(({ end }) => end?.t === 'sent') ?? attempts.find(({ end }) => !end) ?? attempts[0]
        if (!best) throw NOT_FOUND
        return views.outgoingPayment(best)
      },
    },
    {
      method: 'POST',
      path: '/payinvoice',
      access: 'full',
      handle: async ({ form }) => {
        const parameters = await form()
        const override = overrideAmount(parameters)
        const { invoice, text } = parameters.invoice('invoice')
        const amountMsat = override ?? invoice.amountMsat
        if (amountMsat === undefined) throw parameters.amountMissing()
        return payView(await node.pay(invoice, text, amountMsat))
      },
    },
    {
      method: 'POST',
      path: '/payoffer',
      access: 'full',
      handle: async ({ form }) => {
        const parameters = await form()
        const override = overrideAmount(parameters)
        const offer = parameters.offer('offer')
        if ((override ?? offer.amountMsat) === undefined) throw parameters.amountMissing()
        return { offerId: offer.offerId, reason: 'no response to the invoice request' }
      },
    },
    {
      method: 'POST',
      path: '/paylnaddress',
      access: 'full',
      handle: async ({ form }) => {
        const parameters = await form()
        if (overrideAmount(parameters) === undefined) throw parameters.amountMissing()
        const { domain } = parameters.address('address')
        throw new ApiFault(500, `cannot resolve address: could not connect to ${domain}`)
      },
    },
    {
      method: 'POST',
      path: '/decodeinvoice',
      access: 'limited',
      handle: async ({ form }) => views.decodedInvoice((await form()).invoice('invoice').invoice),
    },
    {
      method: 'POST',
      path: '/decodeoffer',
      access: 'limited',
      handle: async ({ form }) => views.decodedOffer((await form()).offer('offer')),
    },
    {
      method: 'POST',
      path: '/lnurlpay',
      access: 'full',
      handle: async ({ form }) => {
        const parameters = await form()
        overrideAmount(parameters)
        const lnurl = readLnurl(parameters.required('lnurl'))
        if (lnurl.tag === 'login') throw badRequest('this is an authentication lnurl')
        if (lnurl.tag === 'withdrawRequest') throw badRequest('this is a withdraw lnurl')
        throw unreachableLnurl(lnurl)
      },
    },
    {
      method: 'POST',
      path: '/lnurlwithdraw',
      access: 'limited',
      handle: async ({ form }) => {
        const lnurl = readLnurl((await form()).required('lnurl'))
        if (lnurl.tag === 'login') throw badRequest('this is an authentication lnurl')
        if (lnurl.tag === 'payRequest') throw badRequest('this is a payment lnurl')
        throw unreachableLnurl(lnurl)
      },
    },
    {
      method: 'POST',
      path: '/lnurlauth',
      access: 'full',
      handle: async ({ form }) => {
        const lnurl = readLnurl((await form()).required('lnurl'))
        if (lnurl.tag !== 'login') throw badRequest('this is a payment or withdraw lnurl')
        throw badRequest(`could not authenticate: ${unreachableLnurl(lnurl).message}`)
      },
    },
    {
      method: 'POST',
      path: '/sendtoaddress',
      access: 'full',
      // As in phoenixd, every failure here is a 200 with the text, including invalid parameters.
      handle: async ({ form }) => {
        try {
          const parameters = await form()
          const amountSat = parameters.integer('amountSat')
          checkAddress(parameters)
          parameters.integer('feerateSatByte')
          return amountSat * 1000 > ledger.balanceMsat ? 'no channel available' : onChainAnswer()
        } catch (error) {
          if (error instanceof ApiFault) return error.message
          throw error
        }
      },
    },
    {
      method: 'POST',
      path: '/bumpfee',
      access: 'full',
      handle: async ({ form }) => {
        const parameters = await form()
        parameters.integer('feerateSatByte')
        return hasChannel() ? 'either the tx is already confirmed or has a higher feerate' : 'no channel available'
      },
    },
    {
      method: 'POST',
      path: '/closechannel',
      access: 'full',
      handle: async ({ form }) => {
        const parameters = await form()
        const channelId = parameters.hex32('channelId')
        checkAddress(parameters)
        parameters.integer('feerateSatByte')
        return channelId === channelIdOf(node.nodeId) ? onChainAnswer() : 'no channel available'
      },
    },
    {
      method: 'POST',
      path: '/export',
      access: 'limited',
      handle: async ({ query }) => {
        const { from, to } = pageOf(query, node.now())
        return `payment history has been exported to ${await exportPayments(ledger, dataDir, from, to, node.now())}`
      },
    },
  ]

  function onChainAnswer(): string {
    return hasChannel() ? 'the sandbox has no chain to send to' : 'no channel available'
  }
}

function checkAddress(parameters: Parameters): void {
  if (!isRegtestAddress(parameters.required('address'))) throw badRequest('Invalid address')
}
