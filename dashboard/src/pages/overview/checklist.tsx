import { IconCircle, IconCircleCheckFilled } from '@tabler/icons-react'
import type { ReactNode } from 'react'
import type { Overview } from '../../api/types.ts'
import { ButtonLink } from '../../components/layout/links.tsx'

export function Checklist({ checklist, isSandbox }: { checklist: Overview['checklist']; isSandbox: boolean }) {
  const charge = isSandbox ? '/gateway/try-it' : '/developers'
  const steps: { isDone: boolean; text: string; action: ReactNode }[] = [
    {
      isDone: checklist.hasNode,
      text: 'Create a node to receive payments',
      action: (
        <ButtonLink to="/nodes" search={{ create: true }}>
          Create a node
        </ButtonLink>
      ),
    },
    {
      isDone: checklist.hasChallenge,
      text: 'Create your first challenge to ask for a payment',
      action: <ButtonLink to={charge}>{isSandbox ? 'Try it' : 'See how'}</ButtonLink>,
    },
    {
      isDone: checklist.hasPaidRequest,
      text: 'Have it paid, and validate or redeem the credential',
      action: <ButtonLink to={charge}>{isSandbox ? 'Try it' : 'See how'}</ButtonLink>,
    },
    {
      isDone: checklist.hasKey,
      text: 'Create an API key to do the same from your own program',
      action: <ButtonLink to="/developers">Create an API key</ButtonLink>,
    },
  ]
  const next = steps.find(({ isDone }) => !isDone)
  if (!next) return null
  return (
    <section className="card spaced-below" aria-labelledby="next">
      <h2 id="next">What to do next</h2>
      <ol className="rows checklist">
        {steps.map((step) => (
          <li key={step.text} className="checklist-step">
            {step.isDone ? (
              <IconCircleCheckFilled size={22} className="done" role="img" aria-label="Done" />
            ) : (
              <IconCircle size={22} className="dim" role="img" aria-label="To do" />
            )}
            <span className={step.isDone ? 'row-main dim' : 'row-main'}>{step.text}</span>
            {step === next && step.action}
          </li>
        ))}
      </ol>
    </section>
  )
}
