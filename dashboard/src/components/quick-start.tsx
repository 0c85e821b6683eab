import { Tabs } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { nodesQuery } from '../api/queries.ts'
import type { Me } from '../api/types.ts'
import { chargeCurl, createNodeCurl, paywallJs, redeemCurl, whoAmICurl } from '../text/snippets.ts'
import { TextLink } from './layout/links.tsx'
import { Snippet } from './snippet.tsx'

export function QuickStart({ me }: { me: Me }) {
  const { data: nodes } = useQuery(nodesQuery)
  const nodeId = nodes?.[0]?.id
  return (
    <section className="card spaced" aria-labelledby="quick-start">
      <h2 id="quick-start">Quick start</h2>
      <p className="small">
        {nodes && nodes.length > 0 ? (
          'Paste them as they are, with your key in the environment variable SERVICE_API_KEY.'
        ) : (
          <>
            Paste them as they are, with your key in the environment variable SERVICE_API_KEY. To be paid you need a node:{' '}
            <TextLink to="/nodes">create one</TextLink>, or put the id of the one that the second command creates into NODE_ID.
          </>
        )}{' '}
        Everything else is in the <a href="/docs">API documentation</a>.
      </p>
      <Tabs defaultValue="curl">
        <Tabs.List aria-label="Language" mb="sm">
          <Tabs.Tab value="curl">curl</Tabs.Tab>
          <Tabs.Tab value="js">JavaScript</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="curl">
          <div className="stack">
            <div>
              <h3 className="legend">Is the key right?</h3>
              <Snippet code={whoAmICurl(me.publicUrl)} label="Is the key right?" />
            </div>
            <div>
              <h3 className="legend">Create a node (permission Write)</h3>
              <p className="small dim">Repeated, it makes no second node; another Idempotency-Key makes another one.</p>
              <Snippet code={createNodeCurl(me.publicUrl)} label="Create a node" />
            </div>
            <div>
              <h3 className="legend">Ask for a payment (permission Gateway)</h3>
              <Snippet code={chargeCurl(me.publicUrl, nodeId)} label="Ask for a payment" />
            </div>
            <div>
              <h3 className="legend">Redeem what the customer comes back with</h3>
              <p className="small dim">
                PAYMENT_ID is the id from the answer above, CREDENTIAL the customer's Authorization header. What you expect is
                compared with what was paid for, and one request id is one delivery: deliver when the answer is 200.
              </p>
              <Snippet code={redeemCurl(me.publicUrl, nodeId)} label="Redeem" />
            </div>
          </div>
        </Tabs.Panel>
        <Tabs.Panel value="js">
          <p className="small dim">
            The SDK's paywall does all of it: it asks for the payment, redeems it and delivers once. It needs the packages express
            and @boltyard/sdk.
          </p>
          <Snippet code={paywallJs(me.publicUrl, nodeId)} label="A server that charges" />
        </Tabs.Panel>
      </Tabs>
    </section>
  )
}
