import type { AddressInfo } from 'node:net'
import express from 'express'
import { paywall } from '../src/paywall/express.ts'

/** A shop in a process of its own: its key and the service's address are in its environment. Says where it is. */
const app = express()
app.get('/jokes/:id', paywall({ nodeId: process.env.NODE_ID ?? '', amountSat: 10 }), (_request, response) => {
  response.send('joke')
})
const server = app.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))
