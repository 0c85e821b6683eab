import type { AddressInfo } from 'node:net'
import express from 'express'
import { paywall } from '../src/paywall/adapters/express.ts'

/**
 * A shop in its own process, with the key and the service's address in its environment. It sends its port to the test, and a
 * message when the handler of /endless starts.
 */
const terms = { nodeId: process.env.NODE_ID ?? '', amountSat: 10, patienceMs: 120_000 }
const app = express()
app.get('/jokes/:id', paywall(terms), (_request, response) => {
  response.send('joke')
})
app.get('/endless', paywall(terms), (_request, response) => {
  process.send?.('working')
  if (process.env.ENDLESS === 'no') response.send('done')
})
const server = app.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))
