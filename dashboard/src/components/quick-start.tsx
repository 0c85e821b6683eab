import { Tabs } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import type { Me } from '../api-types.ts'
import { nodesQuery } from '../queries.ts'
import { chargeCurl, createNodeCurl, paywallJs, validateCurl, whoAmICurl } from '../snippets.ts'
import { TextLink } from './links.tsx'
import { Snippet } from './snippet.tsx'

export function QuickStart({ me }: { me: Me }) {
  const { data: nodes } = useQuery(nodesQuery)
  const nodeId = nodes?.[0]?.id ?? '$NODE_ID'
  return (
    <section className="card spaced" aria-labelledby="quick-start">
      <h2 id="quick-start">Quick start</h2>
      <p className="small">
        {nodes && nodes.length > 0 ? (
          'These work as they are with your key in SERVICE_API_KEY.'
        ) : (
          <>
            You need a node first: <TextLink to="/nodes">create one</TextLink>.
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
              <Snippet code={createNodeCurl(me.publicUrl)} label="Create a node" />
            </div>
            <div>
              <h3 className="legend">Ask for a payment (permission Gateway)</h3>
              <Snippet code={chargeCurl(me.publicUrl, nodeId)} label="Ask for a payment" />
            </div>
            <div>
              <h3 className="legend">Validate what the customer comes back with</h3>
              <Snippet code={validateCurl(me.publicUrl)} label="Validate" />
            </div>
          </div>
        </Tabs.Panel>
        <Tabs.Panel value="js">
          <Snippet code={paywallJs(me.publicUrl, nodeId)} label="A server that charges" />
        </Tabs.Panel>
      </Tabs>
    </section>
  )
}
