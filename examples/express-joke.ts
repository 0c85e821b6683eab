import type { AddressInfo } from 'node:net'
import { discovery, paywall } from '@boltyard/sdk/express'
import express from 'express'

/** A joke for 10 sat: `SERVICE_API_KEY=… NODE_ID=… npx tsx examples/express-joke.ts`. */
const app = express()
const charge = paywall({ nodeId: process.env.NODE_ID ?? '', amountSat: 10, protocol: 'both', description: 'A joke' })

// Publishes what is sold and for how much: /openapi.json, /.well-known/l402.json and /llms.txt.
app.use(discovery({ title: 'Jokes', routes: { 'GET /joke': charge } }))

app.get('/joke', charge, (_request, response) => {
  response.json({ joke: 'A transaction walks into a bar. The bartender says: wait six blocks.' })
})

const server = app.listen(Number(process.env.PORT ?? 3000), () => {
  process.stdout.write(`http://localhost:${(server.address() as AddressInfo).port}/joke\n`)
})
