import type { AddressInfo } from 'node:net'
import express from 'express'
import { paywall } from '../src/paywall/adapters/express.ts'

/**
 * A shop in a process of its own: its key and the service's address are in its environment. It says where it is, and when it has begun
 * to work on /endless.
 */
const terms = { nodeId: process.env.NODE_ID ?? '', amountSat: 10 }
const app = express()
app.get('/jokes/:id', paywall(terms), (_request, response) => {
  response.send('joke')
})
app.get('/endless', paywall(terms), (_request, response) => {
  process.send?.('working')
  if (process.env.ENDLESS === 'no') response.send('done')
})
const server = app.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))
