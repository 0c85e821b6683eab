/** Like the receivers of docs/guides/react-to-a-payment.md. A test runs them. */
export const RECEIVERS = {
  typescript: `import { verifyWebhook } from '@boltyard/sdk/webhooks'
import express from 'express'

const { WEBHOOK_SECRET = '', PORT = '3000' } = process.env
const app = express()

app.post('/hook', express.raw({ type: 'application/json' }), async (request, response) => {
  let event
  try {
    event = await verifyWebhook(request.body, request.headers, WEBHOOK_SECRET)
  } catch (error) {
    return response.status(400).send(String(error))
  }
  if (event.type === 'payment.settled') console.log(\`\${event.data.amountSat} sat for \${event.data.description}\`)
  response.sendStatus(204)
})

app.listen(Number(PORT))`,
  python: `import os

from fastapi import FastAPI, HTTPException, Request
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

webhook = Webhook(os.environ["WEBHOOK_SECRET"])
app = FastAPI()


@app.post("/hook", status_code=204)
async def hook(request: Request) -> None:
    try:
        event = webhook.verify(await request.body(), dict(request.headers))
    except WebhookVerificationError as error:
        raise HTTPException(400, str(error))
    if event["type"] == "payment.settled":
        print(event["data"]["amountSat"], "sat for", event["data"]["description"], flush=True)`,
}
