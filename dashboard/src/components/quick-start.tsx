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
          'Set the environment variable SERVICE_API_KEY to your key, then paste these commands.'
        ) : (
          <>
            Set the environment variable SERVICE_API_KEY to your key, then paste these commands. You need a node to receive
            payments: <TextLink to="/nodes">create one</TextLink>, or set NODE_ID to the id of the node that the second command
            creates.
          </>
        )}{' '}
        For everything else, see the <a href="/docs/">documentation</a>.
      </p>
      <Tabs defaultValue="curl">
        <Tabs.List aria-label="Language" mb="sm">
          <Tabs.Tab value="curl">curl</Tabs.Tab>
          <Tabs.Tab value="js">JavaScript</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="curl">
          <div className="stack">
            <div>
              <h3 className="legend">Check your key</h3>
              <Snippet code={whoAmICurl(me.publicUrl)} label="Check your key" />
            </div>
            <div>
              <h3 className="legend">Create a node (requires the Write permission)</h3>
              <p className="small dim">
                Repeating this command does not create a second node. To create another one, change the Idempotency-Key.
              </p>
              <Snippet code={createNodeCurl(me.publicUrl)} label="Create a node" />
            </div>
            <div>
              <h3 className="legend">Ask for a payment (requires the Gateway permission)</h3>
              <Snippet code={chargeCurl(me.publicUrl, nodeId)} label="Ask for a payment" />
            </div>
            <div>
              <h3 className="legend">Redeem the customer's credential</h3>
              <p className="small dim">
                PAYMENT_ID is the id from the response above, CREDENTIAL the customer's Authorization header. The terms in
                "expect" are compared with the payment, and each request id stands for one delivery. Deliver if the status is 200.
              </p>
              <Snippet code={redeemCurl(me.publicUrl, nodeId)} label="Redeem" />
            </div>
          </div>
        </Tabs.Panel>
        <Tabs.Panel value="js">
          <p className="small dim">
            The SDK's paywall does all of this: it asks for the payment, redeems it and delivers once. The SDK is not published
            yet: in a copy of the Boltyard repository, run <code>npm pack -w sdk</code>, then install express and the resulting
            file in your project.
          </p>
          <Snippet code={paywallJs(me.publicUrl, nodeId)} label="A server that charges" />
        </Tabs.Panel>
      </Tabs>
    </section>
  )
}
