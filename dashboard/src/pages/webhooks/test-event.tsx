import { Button, Group, NativeSelect } from '@mantine/core'
import { useState } from 'react'
import { api } from '../../api/client.ts'
import type { EventType, TestResult, Webhook } from '../../api/types.ts'
import { Problem } from '../../components/problem.tsx'
import { useAction } from '../../components/use-action.ts'
import { EVENT_TYPES } from '../../text/event-types.ts'
import { Outcome } from './outcome.tsx'

export function TestEvent({ webhook }: { webhook: Webhook }) {
  const [type, setType] = useState<EventType>('payment.settled')
  const [result, setResult] = useState<TestResult | null>(null)
  const send = useAction(async () => {
    setResult(null)
    setResult(await api.post<TestResult>(`/webhooks/${webhook.id}/test`, { type }))
  })
  return (
    <section className="card" aria-labelledby="test">
      <h2 id="test">Send a test event</h2>
      <p className="small dim">
        A sample with "test": true, sent once and not listed below. The receiver has 15 seconds to respond.
      </p>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          void send.run()
        }}
      >
        <Group align="flex-end" gap="sm">
          <NativeSelect
            label="Type"
            value={type}
            data={EVENT_TYPES}
            onChange={(event) => setType(EVENT_TYPES.find((one) => one === event.currentTarget.value) ?? type)}
          />
          <Button type="submit" variant="default" loading={send.isPending}>
            Send test event
          </Button>
        </Group>
      </form>
      {/* Present from the start: screen readers ignore a region that appears together with its text. */}
      <div role="status" aria-label="Result of the test" className="test-result">
        {result && <Outcome attempt={result} />}
      </div>
      <Problem error={send.error} what="The test event was not sent." />
    </section>
  )
}
