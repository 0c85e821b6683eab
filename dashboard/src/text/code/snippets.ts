import { freshKey } from '../../api/client.ts'

/**
 * Code that people copy and paste. The key always comes from the environment, because a key in a command would end up in the shell
 * history. Bodies are here-documents so that the shell expands variables. No comments: zsh would run them as commands.
 */
export const base = (publicUrl: string): string => `${publicUrl.replace(/\/$/, '')}/v1`

/** Fixed while the page is open, so repeating the command after a lost response does not create a second node. */
export const REPEAT_KEY = freshKey()

/** The resource the snippets sell. */
export const RESOURCE = 'GET /report'

export const createNodeCurl = (publicUrl: string): string =>
  `curl -X POST ${base(publicUrl)}/nodes \\
  -H "Authorization: Bearer $SERVICE_API_KEY" \\
  -H "Content-Type: application/json" \\
  -H "Idempotency-Key: ${REPEAT_KEY}" \\
  -d @- <<JSON
{"name": "shop"}
JSON`

export const whoAmICurl = (publicUrl: string): string =>
  `curl ${base(publicUrl)}/api-key \\
  -H "Authorization: Bearer $SERVICE_API_KEY"`

/** Without a node, the snippet takes the id from the environment. */
export const chargeCurl = (publicUrl: string, nodeId = '$NODE_ID'): string =>
  `curl -X POST ${base(publicUrl)}/gateway/payments \\
  -H "Authorization: Bearer $SERVICE_API_KEY" \\
  -H "Content-Type: application/json" \\
  -d @- <<JSON
{
  "nodeId": "${nodeId}",
  "amountSat": 100,
  "description": "One report",
  "resource": "${RESOURCE}",
  "protocol": "l402"
}
JSON`

export const redeemCurl = (publicUrl: string, nodeId = '$NODE_ID'): string =>
  `curl -X POST "${base(publicUrl)}/gateway/payments/$PAYMENT_ID/redeem" \\
  -H "Authorization: Bearer $SERVICE_API_KEY" \\
  -H "Content-Type: application/json" \\
  -d @- <<JSON
{
  "expect": {
    "nodeId": "${nodeId}",
    "resource": "${RESOURCE}",
    "minAmountSat": 100
  },
  "requestId": "request-1",
  "credential": "$CREDENTIAL"
}
JSON`

export const paywallTs = (publicUrl: string, nodeId?: string): string =>
  `import express from 'express'
import { Boltyard } from '@boltyard/sdk'
import { paywall } from '@boltyard/sdk/express'

const client = new Boltyard({ baseUrl: '${base(publicUrl)}' })
const nodeId = ${nodeId ? `'${nodeId}'` : "process.env.NODE_ID ?? ''"}

const app = express()
app.get('/report', paywall({ client, nodeId, amountSat: 100, description: 'One report' }), (request, response) => {
  response.send('Here is what you paid for.')
})
app.listen(process.env.PORT ?? 3000)`

export const createWebhookCurl = (publicUrl: string): string =>
  `curl -X POST ${base(publicUrl)}/webhooks \\
  -H "Authorization: Bearer $SERVICE_API_KEY" \\
  -H "Content-Type: application/json" \\
  -d @- <<JSON
{"url": "https://shop.example/hook", "types": ["payment.*"]}
JSON`

export const listenCli = (publicUrl: string): string =>
  `export SERVICE_BASE_URL=${base(publicUrl)}
boltyard listen --forward-to http://localhost:3000/hook`

export const nodeCurl = (endpointUrl: string): string =>
  `curl ${endpointUrl}/createinvoice \\
  -u ":$NODE_RESTRICTED_PASSWORD" \\
  -d amountSat=1000 -d description="Hello"`

export const nodeTs = (endpointUrl: string): string =>
  `const answer = await fetch('${endpointUrl}/createinvoice', {
  method: 'POST',
  headers: { authorization: 'Basic ' + btoa(':' + process.env.NODE_RESTRICTED_PASSWORD) },
  body: new URLSearchParams({ amountSat: '1000', description: 'Hello' }),
})
const { serialized, paymentHash } = await answer.json()
console.log(serialized, paymentHash)`

/** Without blank lines inside blocks, which would end them at Python's prompt. */
export const nodePython = (endpointUrl: string): string =>
  `import base64, json, os, urllib.parse, urllib.request
password = os.environ["NODE_RESTRICTED_PASSWORD"]
request = urllib.request.Request(
    "${endpointUrl}/createinvoice",
    method="POST",
    headers={"Authorization": "Basic " + base64.b64encode(f":{password}".encode()).decode()},
    data=urllib.parse.urlencode({"amountSat": 1000, "description": "Hello"}).encode(),
)
with urllib.request.urlopen(request) as response:
    invoice = json.load(response)
    print(invoice["serialized"], invoice["paymentHash"])`

export const nodeCli = (publicUrl: string, nodeId: string): string =>
  `export SERVICE_BASE_URL=${base(publicUrl)}
boltyard nodes get ${nodeId}
boltyard payments create --node ${nodeId} --amount-sat 100 --description "One report"`

export const inviteCurl = (publicUrl: string): string =>
  `curl -X POST ${publicUrl.replace(/\/$/, '')}/operator/v1/invitations \\
  -H "Authorization: Bearer $OPERATOR_TOKEN"`

/** The file does not end with a newline, so without `echo`, the shell's prompt would stand right after the token. */
export const printToken = (file: string): string => `cat '${file.replaceAll("'", "'\\''")}'; echo`

export const MAKE_TOKEN = 'openssl rand -hex 32'
