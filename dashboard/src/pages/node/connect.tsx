import { Tabs } from '@mantine/core'
import type { DashboardNode, Me } from '../../api/types.ts'
import { CopyButton } from '../../components/copy-button.tsx'
import { TextLink } from '../../components/layout/links.tsx'
import { Snippet } from '../../components/snippet.tsx'
import { isLanguage, useLanguage } from '../../text/code/languages.ts'
import { nodeCli, nodeCurl, nodePython, nodeTs } from '../../text/code/snippets.ts'

export function NodeConnect({ node, me }: { node: DashboardNode; me: Me }) {
  const [language, setLanguage] = useLanguage()
  return (
    <div className="stack">
      <section className="card" aria-labelledby="endpoint">
        <h2 id="endpoint">Endpoint</h2>
        <p className="copyable">
          <span className="mono">{node.endpointUrl}</span> <CopyButton text={node.endpointUrl} label="Copy endpoint" />
        </p>
        <p className="small">
          This is the address of the node’s own API. Use one of the two passwords you stored when you created the node. Give the
          restricted one to programs that only receive payments. API keys of this service do not work here.
        </p>
      </section>
      <section className="card" aria-labelledby="examples">
        <h2 id="examples">Examples</h2>
        <Tabs defaultValue={language} onChange={(value) => isLanguage(value) && setLanguage(value)}>
          <Tabs.List aria-label="Language" mb="sm">
            <Tabs.Tab value="curl">curl</Tabs.Tab>
            <Tabs.Tab value="typescript">TypeScript</Tabs.Tab>
            <Tabs.Tab value="python">Python</Tabs.Tab>
            <Tabs.Tab value="cli">Command line</Tabs.Tab>
          </Tabs.List>
          <Tabs.Panel value="curl">
            <p className="small">Create an invoice on the node.</p>
            <Snippet code={nodeCurl(node.endpointUrl)} label="curl example" language="curl" />
          </Tabs.Panel>
          <Tabs.Panel value="typescript">
            <p className="small">Create an invoice on the node, with Node.js 20 or later.</p>
            <Snippet code={nodeTs(node.endpointUrl)} label="TypeScript example" language="typescript" />
          </Tabs.Panel>
          <Tabs.Panel value="python">
            <p className="small">Create an invoice on the node, with Python 3. It needs no packages.</p>
            <Snippet code={nodePython(node.endpointUrl)} label="Python example" language="python" />
          </Tabs.Panel>
          <Tabs.Panel value="cli">
            <p className="small">
              Uses the command line client <code>boltyard</code>, with an API key in the environment variable SERVICE_API_KEY.
              Create a key under <TextLink to="/developers">Developers</TextLink>.
            </p>
            <Snippet code={nodeCli(me.publicUrl, node.id)} label="Command line example" language="curl" />
          </Tabs.Panel>
        </Tabs>
      </section>
    </div>
  )
}
