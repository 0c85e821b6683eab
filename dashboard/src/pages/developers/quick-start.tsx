import { Tabs } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { nodesQuery } from '../../api/queries.ts'
import type { Me } from '../../api/types.ts'
import { TextLink } from '../../components/layout/links.tsx'
import { Loading } from '../../components/loading.tsx'
import { Snippet } from '../../components/snippet.tsx'
import { useLanguage } from '../../text/code/languages.ts'
import { LANGUAGES, type Language, snippetsIn } from '../../text/code/program-snippets.ts'
import { paywallTs } from '../../text/code/snippets.ts'

const HOW: Record<Language, string> = {
  curl: 'paste these commands into a shell.',
  typescript: 'run these with Node.js 20 or later, for example pasted into a file that ends in .mts and run with npx tsx.',
  python: 'run these with Python 3. They need no packages.',
}

export function QuickStart({ me }: { me: Me }) {
  const { data: nodes, isPending } = useQuery(nodesQuery)
  const [language, setLanguage] = useLanguage()
  const nodeId = nodes?.[0]?.id
  const snippets = snippetsIn(language, me.publicUrl, nodeId)
  // The text depends on the nodes, and must not move while someone reads it.
  if (isPending) return <Loading height={700} />
  return (
    <section className="card spaced" aria-labelledby="quick-start">
      <h2 id="quick-start">Quick start</h2>
      <Tabs value={language} onChange={(value) => setLanguage((value ?? 'curl') as Language)}>
        <Tabs.List aria-label="Language" mb="sm">
          {(Object.keys(LANGUAGES) as Language[]).map((one) => (
            <Tabs.Tab key={one} value={one}>
              {LANGUAGES[one]}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        <Tabs.Panel value={language}>
          <p className="small">
            Set the environment variable SERVICE_API_KEY to your key, then {HOW[language]}
            {nodes && nodes.length === 0 && (
              <>
                {' '}
                You need a node to receive payments: <TextLink to="/nodes">create one</TextLink>, or set NODE_ID to the id of the
                node that the second example creates.
              </>
            )}{' '}
            For everything else, see the <a href="/docs/">documentation</a>.
          </p>
          <div className="stack">
            <div>
              <h3 className="legend">Check your key</h3>
              <Snippet code={snippets.whoAmI} label="Check your key" language={language} />
            </div>
            <div>
              <h3 className="legend">Create a node (requires the Write permission)</h3>
              <p className="small dim">
                Repeating this does not create a second node. To create another one, change the Idempotency-Key.
              </p>
              <Snippet code={snippets.createNode} label="Create a node" language={language} />
            </div>
            <div>
              <h3 className="legend">Ask for a payment (requires the Gateway permission)</h3>
              <Snippet code={snippets.charge} label="Ask for a payment" language={language} />
            </div>
            <div>
              <h3 className="legend">Redeem the customer’s credential</h3>
              <p className="small dim">
                PAYMENT_ID is the id from the response above, CREDENTIAL the customer’s Authorization header. The terms in
                "expect" are compared with the payment, and each request id stands for one delivery. Deliver if the status is 200.
              </p>
              <Snippet code={snippets.redeem} label="Redeem" language={language} />
            </div>
            {language === 'typescript' && (
              <div>
                <h3 className="legend">Or let the SDK’s paywall do all of this</h3>
                <p className="small dim">
                  It asks for the payment, redeems it and delivers once. The SDK is not published yet: in a copy of the Boltyard
                  repository, run <code>npm pack -w sdk</code>, then install express and the resulting file in your project.
                </p>
                <Snippet code={paywallTs(me.publicUrl, nodeId)} label="A server that charges" language={language} />
              </div>
            )}
          </div>
        </Tabs.Panel>
      </Tabs>
    </section>
  )
}
