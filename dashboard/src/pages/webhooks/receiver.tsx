import { Tabs } from '@mantine/core'
import { Snippet } from '../../components/snippet.tsx'
import { useLanguage } from '../../text/code/languages.ts'
import { LANGUAGES } from '../../text/code/program-snippets.ts'
import { RECEIVERS } from '../../text/code/receivers.ts'

/** A program that verifies and handles deliveries. */
export function Receiver() {
  const [language, setLanguage] = useLanguage()
  return (
    <section className="card spaced" aria-labelledby="receiver">
      <h2 id="receiver">Your receiver</h2>
      <p className="small">
        It verifies the signature of a delivery, reacts to payment.settled and responds with 204. Set WEBHOOK_SECRET to the secret
        that you stored when you created the webhook. See <a href="/docs/guides/react-to-a-payment">React to a payment</a>.
      </p>
      <Tabs
        value={language === 'python' ? 'python' : 'typescript'}
        onChange={(value) => setLanguage(value === 'python' ? 'python' : 'typescript')}
      >
        <Tabs.List aria-label="Language of the receiver" mb="sm">
          <Tabs.Tab value="typescript">{LANGUAGES.typescript}</Tabs.Tab>
          <Tabs.Tab value="python">{LANGUAGES.python}</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="typescript">
          <p className="small dim">
            The SDK is not published yet: in a copy of the Boltyard repository, run <code>npm pack -w sdk</code>, then install
            express and the resulting file in your project.
          </p>
          <Snippet code={RECEIVERS.typescript} label="Receiver in TypeScript" language="typescript" />
        </Tabs.Panel>
        <Tabs.Panel value="python">
          <p className="small dim">
            Install its packages with <code>pip install fastapi uvicorn standardwebhooks</code>, store it as{' '}
            <code>receiver.py</code>, and run it with <code>uvicorn receiver:app --port 3000</code>.
          </p>
          <Snippet code={RECEIVERS.python} label="Receiver in Python" language="python" />
        </Tabs.Panel>
      </Tabs>
    </section>
  )
}
