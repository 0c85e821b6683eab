/** What people copy. The key comes from the environment in all of them: one that is pasted into a command stays in its history. */
const base = (publicUrl: string): string => `${publicUrl.replace(/\/$/, '')}/v1`

export const createNodeCurl = (publicUrl: string): string =>
  `curl -X POST ${base(publicUrl)}/nodes \\
  -H "Authorization: Bearer $SERVICE_API_KEY" \\
  -H "Content-Type: application/json" \\
  -H "Idempotency-Key: $(uuidgen)" \\
  -d '{"name": "shop"}'`

export const whoAmICurl = (publicUrl: string): string =>
  `curl ${base(publicUrl)}/api-key \\
  -H "Authorization: Bearer $SERVICE_API_KEY"`

export const chargeCurl = (publicUrl: string, nodeId: string): string =>
  `curl -X POST ${base(publicUrl)}/gateway/payments \\
  -H "Authorization: Bearer $SERVICE_API_KEY" \\
  -H "Content-Type: application/json" \\
  -d '{"nodeId": "${nodeId}", "amountSat": 100, "description": "One report", "protocol": "l402"}'`

export const validateCurl = (publicUrl: string): string =>
  `curl -X POST ${base(publicUrl)}/gateway/payments/$PAYMENT_ID/validate \\
  -H "Authorization: Bearer $SERVICE_API_KEY" \\
  -H "Content-Type: application/json" \\
  -d "{\\"credential\\": \\"$AUTHORIZATION_OF_YOUR_CUSTOMER\\"}"`

export const paywallJs = (publicUrl: string, nodeId: string): string =>
  `// A server of yours that charges 100 sat for a request
import { createServer } from 'node:http'

const gateway = (path, body) =>
  fetch('${base(publicUrl)}/gateway/payments' + path, {
    method: 'POST',
    headers: { authorization: 'Bearer ' + process.env.SERVICE_API_KEY, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })

// L402: the credential names its payment in the macaroon
const paymentOf = (credential) =>
  Buffer.from(credential.split(' ')[1]?.split(':')[0] ?? '', 'base64').toString('latin1').match(/payment_id=(pay_[0-9a-z]{20})/)?.[1]

createServer(async (request, response) => {
  const credential = request.headers.authorization
  const id = credential && paymentOf(credential)
  if (id) {
    const answer = await gateway('/' + id + '/validate', { credential })
    if (answer.ok) return response.end('Here is what you paid for.')
  }
  const answer = await gateway('', { nodeId: '${nodeId}', amountSat: 100, description: 'One report', protocol: 'l402' })
  const { challenge } = await answer.json()
  response.writeHead(402, { 'www-authenticate': challenge }).end('Payment required')
}).listen(3000)`

export const nodeCurl = (endpointUrl: string): string =>
  `# An invoice, made by the node itself
curl ${endpointUrl}/createinvoice \\
  -u ":$NODE_RESTRICTED_PASSWORD" \\
  -d amountSat=1000 -d description="Hello"`

export const nodeJs = (endpointUrl: string): string =>
  `const answer = await fetch('${endpointUrl}/createinvoice', {
  method: 'POST',
  headers: { authorization: 'Basic ' + btoa(':' + process.env.NODE_RESTRICTED_PASSWORD) },
  body: new URLSearchParams({ amountSat: '1000', description: 'Hello' }),
})
const { serialized, paymentHash } = await answer.json()`

export const nodeCli = (publicUrl: string, nodeId: string): string =>
  `export SERVICE_BASE_URL=${base(publicUrl)}
export SERVICE_API_KEY=...   # from Developers
boltyard nodes get ${nodeId}
boltyard payments create --node ${nodeId} --amount-sat 100 --description "One report"`
