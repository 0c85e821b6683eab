import { Button, Group, NativeSelect, NumberInput, SegmentedControl, Stack, TextInput } from '@mantine/core'
import { queryOptions, useQuery } from '@tanstack/react-query'
import { type FormEvent, useEffect, useRef, useState } from 'react'
import { queryClient } from '../../api/queries.ts'
import type { DashboardNode, Me } from '../../api/types.ts'
import { Amount } from '../../components/amount.tsx'
import { ButtonLink } from '../../components/layout/links.tsx'
import { Problem } from '../../components/problem.tsx'
import { Success } from '../../components/status.tsx'
import { useAction } from '../../components/use-action.ts'
import { LANGUAGES } from '../../text/code/program-snippets.ts'
import { nextOf, type Run, STEPS, type Step, type Terms, take } from './purchase.ts'
import { type RequestLanguage, TryItStep } from './step.tsx'

type Props = { me: Me; nodes: DashboardNode[] }

const VERBS: Record<Exclude<Step, 'issue'>, string> = {
  refuse: 'Respond with 402',
  pay: 'Pay as a customer',
  answer: 'Build the credential',
  redeem: 'Redeem',
  deliver: 'Deliver',
}

/** `isAtOnce`: the person ran the steps to the end with a click at the top, so the result is shown above them. */
type Kept = { terms: Terms; run: Run | null; isAtOnce: boolean }

const FRESH: Kept = {
  terms: { nodeId: '', amountSat: 100, description: 'One report', protocol: 'l402' },
  run: null,
  isAtOnce: false,
}

/** Kept while the person looks at another page. Like all data, it is dropped when they sign out. */
const keptQuery = queryOptions({
  queryKey: ['try-it'],
  queryFn: (): Kept => FRESH,
  initialData: FRESH,
  // Only this page changes it.
  enabled: false,
  gcTime: Number.POSITIVE_INFINITY,
})

const keep = (changed: Partial<Kept>): void =>
  void queryClient.setQueryData(keptQuery.queryKey, (before = FRESH) => ({ ...before, ...changed }))

/** A complete 402 purchase, one step at a time or all at once. */
export function TryItSteps({ me, nodes }: Props) {
  const { data: kept } = useQuery(keptQuery)
  const { terms, run, isAtOnce } = kept
  const setTerms = (changed: Terms) => keep({ terms: changed })
  const setRun = (changed: Run | null) => keep({ run: changed })
  const next = nextOf(run)
  const [language, setLanguage] = useState<RequestLanguage>('http')
  // The chosen node may stop while the form is open; use the first running one then.
  const nodeId = nodes.some((node) => node.id === terms.nodeId) ? terms.nodeId : (nodes[0]?.id ?? '')

  const go = useAction(async (toTheEnd: boolean) => {
    keep({ isAtOnce: toTheEnd })
    let now: Run = run ?? { terms: { ...terms, nodeId } }
    for (let step = nextOf(now); step; step = toTheEnd ? nextOf(now) : undefined) {
      now = await take(step, now)
      setRun(now)
    }
    for (const key of ['payments', 'overview', 'nodes']) void queryClient.invalidateQueries({ queryKey: [key] })
  })
  const again = () => {
    setRun(null)
    shown.current = 'issue'
    go.clear()
  }
  const submit = (event: FormEvent) => {
    event.preventDefault()
    void go.run(true)
  }
  const result = useRef<HTMLDivElement>(null)
  const button = useRef<HTMLButtonElement>(null)
  const shown = useRef(next)
  const isOver = run !== null && next === undefined
  const isUnderWay = run !== null && !go.isPending
  // Six steps do not fit on a screen, so scroll to the next button or the outcome. Move the focus as well, because the button that had it
  // is gone.
  useEffect(() => {
    // Not when the person only returns to this page.
    if (next === shown.current || (!isOver && !isUnderWay)) return
    shown.current = next
    if (isOver) result.current?.scrollIntoView({ block: 'nearest' })
    else {
      button.current?.focus({ preventScroll: true })
      button.current?.scrollIntoView({ block: 'nearest' })
    }
  }, [isOver, isUnderWay, next])
  const isValid = terms.amountSat > 0 && terms.description.trim() !== ''

  const outcome = (
    <div role="status" aria-live="polite" ref={result} className="result">
      {run?.issued && isOver && (
        <div className="card stack">
          <Success word="Paid" />
          <Held run={run} name={nodes.find(({ id }) => id === run.terms.nodeId)?.name} />
          <Group>
            <ButtonLink to="/gateway/payments/$paymentId" params={{ paymentId: run.issued.id }} variant="default">
              See this payment
            </ButtonLink>
            <ButtonLink to="/developers">Do it from your own program</ButtonLink>
          </Group>
        </div>
      )}
    </div>
  )

  return (
    <div className="stack">
      <section className="card" aria-labelledby="terms">
        <h2 id="terms">What the customer pays for</h2>
        <p className="small dim">
          Six steps from “please pay” to “paid”. You play the server, and the sandbox plays the customer. The dashboard sends the
          requests with your session; your own server sends the same requests with an API key.
        </p>
        <form onSubmit={submit}>
          <fieldset disabled={run !== null} className="bare">
            <Stack gap="md">
              <Group grow align="flex-start" className="fields">
                <NativeSelect
                  label="Node"
                  value={nodeId}
                  data={nodes.map((node) => ({ value: node.id, label: node.name }))}
                  onChange={(event) => setTerms({ ...terms, nodeId: event.currentTarget.value })}
                />
                <NativeSelect
                  label="Protocol"
                  value={terms.protocol}
                  data={[
                    { value: 'l402', label: 'L402' },
                    { value: 'mpp', label: 'MPP' },
                  ]}
                  onChange={(event) => setTerms({ ...terms, protocol: event.currentTarget.value === 'mpp' ? 'mpp' : 'l402' })}
                />
                <NumberInput
                  label="Amount in sat"
                  min={1}
                  value={terms.amountSat}
                  onChange={(value) => setTerms({ ...terms, amountSat: Number(value) })}
                />
              </Group>
              <TextInput
                label="Description"
                dir="auto"
                maxLength={500}
                autoComplete="off"
                value={terms.description}
                onChange={(event) => setTerms({ ...terms, description: event.currentTarget.value })}
              />
            </Stack>
          </fieldset>
          <Group mt="md">
            {run === null && (
              <>
                <Button type="submit" loading={go.isPending} disabled={!isValid}>
                  Run all steps
                </Button>
                <Button variant="default" disabled={!isValid || go.isPending} onClick={() => void go.run(false)}>
                  One step at a time
                </Button>
              </>
            )}
            {run !== null && next && (
              <Button variant="light" disabled={go.isPending} onClick={() => void go.run(true)}>
                Run the remaining steps
              </Button>
            )}
            {run !== null && (
              <Button variant="default" disabled={go.isPending} onClick={again}>
                Start again
              </Button>
            )}
          </Group>
        </form>
        {run !== null && (
          <Group mt="md" gap="xs">
            <span id="request-language" className="small">
              Show your server’s requests as
            </span>
            <SegmentedControl
              size="xs"
              aria-labelledby="request-language"
              value={language}
              onChange={(value) => setLanguage(value as RequestLanguage)}
              data={[{ value: 'http', label: 'HTTP' }, ...Object.entries(LANGUAGES).map(([value, label]) => ({ value, label }))]}
            />
          </Group>
        )}
      </section>
      {isAtOnce && outcome}
      {STEPS.map((step, place) => {
        const isDone = run !== null && (next === undefined || place < STEPS.indexOf(next))
        return (
          <TryItStep
            key={step}
            step={step}
            number={place + 1}
            run={run}
            isDone={isDone}
            publicUrl={me.publicUrl}
            language={language}
          >
            {step === next && (
              <>
                {run !== null && step !== 'issue' && (
                  <Button ref={button} className="next-step" loading={go.isPending} onClick={() => void go.run(false)}>
                    {VERBS[step]}
                  </Button>
                )}
                <Problem error={go.error} what="This step failed." />
              </>
            )}
          </TryItStep>
        )
      })}
      {!isAtOnce && outcome}
    </div>
  )
}

/** Shows that the money arrived, if both balances are known. */
function Held({ run: { beforeSat, afterSat }, name }: { run: Run; name: string | undefined }) {
  if (beforeSat == null || afterSat == null || name === undefined) return null
  return (
    <p data-testid="held">
      On <bdi>{name}</bdi>: <Amount sat={beforeSat} /> before, <Amount sat={afterSat} /> now, fee credit included.
    </p>
  )
}
