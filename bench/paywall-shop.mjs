import { Boltyard } from '@boltyard/sdk'
import { paywall } from '@boltyard/sdk/express'
import express from 'express'

/**
 * A shop in its own process, so that its CPU time can be measured. It is configured by environment variables and sends its port. In
 * JavaScript, with the built package, as in a customer's shop: a TypeScript loader makes every closure slower to create.
 */
const client = new Boltyard({ maxConcurrency: 64 })
const terms = { client, nodeId: process.env.NODE_ID ?? '', amountSat: 100, maxOpenVisits: 0 }
const app = express()
const handler = (_request, response) => void response.json({ joke: 'bench' })
app.get('/healthz', handler)
app.get('/bench', paywall(terms), handler)
// /free and /l402 are compared, so they are next to each other: Express tries one route after another.
app.get('/free', handler)
app.get('/l402', paywall({ ...terms, protocol: 'l402' }), handler)
app.get('/all', paywall({ ...terms, protocols: ['mpp', 'l402', 'x402'] }), handler)
const server = app.listen(0, '127.0.0.1', () => process.send?.(server.address().port))
