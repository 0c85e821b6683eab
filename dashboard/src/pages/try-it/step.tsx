import { VisuallyHidden } from '@mantine/core'
import { IconCheck } from '@tabler/icons-react'
import type { ReactNode } from 'react'
import { Snippet } from '../../components/snippet.tsx'
import { challengeObject, credentialObject } from '../../text/challenge.ts'
import type { CodeLanguage } from '../../text/code/highlight.ts'
import { type Language, requestIn } from '../../text/code/program-snippets.ts'
import { chargeOf, type Run, type Step, type Terms } from './purchase.ts'

export type RequestLanguage = Language | 'http'
type Props = {
  step: Step
  number: number
  run: Run | null
  isDone: boolean
  publicUrl: string
  language: RequestLanguage
  children: ReactNode
}

const TITLES: Record<Step, string> = {
  issue: 'Your server creates a challenge',
  refuse: 'Your server responds to its client with 402',
  pay: 'The customer pays the invoice',
  answer: 'Their client builds the credential',
  redeem: 'Your server redeems the credential',
  deliver: 'Your server delivers',
}

export function TryItStep({ step, number, run, isDone, publicUrl, language, children }: Props) {
  return (
    <section className={`card ${isDone ? 'step-done' : ''}`} aria-labelledby={`step-${step}`} data-testid={`step-${step}`}>
      <div className="step-head">
        <span className="step-number" aria-hidden="true">
          {isDone ? <IconCheck size={16} /> : number}
        </span>
        <h2 id={`step-${step}`}>
          {TITLES[step]}
          {isDone && <VisuallyHidden> (done)</VisuallyHidden>}
        </h2>
      </div>
      {isDone && run && <Shown step={step} run={run} publicUrl={publicUrl} language={language} />}
      {children}
    </section>
  )
}

/** What happens if the request is repeated. */
const REPEATED: Record<Terms['protocol'], string> = {
  mpp: 'The request id makes sure there is only one delivery, even if the response is lost and the request is repeated.',
  l402: 'An L402 credential may be redeemed more than once. The request id stands for this one delivery: if the response is lost, repeat the request with the same id.',
}

type ShownProps = { step: Step; run: Run; publicUrl: string; language: RequestLanguage }

function Shown({ step, run, publicUrl, language }: ShownProps) {
  const { issued, offer, payment, credential, redemption, redeemed, receipt } = run
  const request = (path: string, body: Parameters<typeof requestIn>[3]): Side => {
    if (language !== 'http') return { code: requestIn(language, publicUrl, path, body), language }
    const head = `POST ${publicUrl}/v1${path}\nAuthorization: Bearer $SERVICE_API_KEY\nContent-Type: application/json`
    return { ...http(head), json: body }
  }
  switch (step) {
    case 'issue':
      return (
        <Exchange
          step={step}
          request={request('/gateway/payments', chargeOf(run.terms))}
          answer={{ ...http('HTTP/1.1 201 Created'), json: issued }}
        />
      )
    case 'refuse':
      return (
        <Exchange
          step={step}
          request={http('GET /report HTTP/1.1\nHost: your-server.example')}
          answer={http(`HTTP/1.1 402 Payment Required\nWWW-Authenticate: ${issued?.challenge}`)}
          decoded={{ title: 'The challenge, decoded', json: challengeObject(issued?.challenge ?? '') }}
          note="This is all your client needs: the challenge contains the invoice."
        />
      )
    case 'pay':
      return (
        <Exchange
          step={step}
          request={{ code: `Pay the invoice, with any Lightning wallet:\n\n${offer?.invoiceText}` }}
          answer={{ code: '', json: payment }}
          note="The preimage shows that the invoice was paid: only the payer gets it from the network."
        />
      )
    case 'answer':
      return (
        <Exchange
          step={step}
          requestTitle="Parts of the credential"
          request={{
            code:
              offer?.protocol === 'l402'
                ? 'L402 <macaroon of the challenge>:<preimage>'
                : 'Payment <base64url of>\n{\n  "challenge": { …the six parameters of the challenge, unchanged… },\n  "payload": { "preimage": "…" }\n}',
          }}
          answerTitle="Request with the credential"
          answer={http(`GET /report HTTP/1.1\nHost: your-server.example\nAuthorization: ${credential}`)}
          decoded={{ title: 'The credential, decoded', json: credentialObject(credential ?? '') }}
          note="Built here in the browser, as the customer’s client would do it."
        />
      )
    case 'redeem':
      return (
        <Exchange
          step={step}
          request={request(`/gateway/payments/${issued?.id}/redeem`, { ...redemption })}
          answer={{ ...http('HTTP/1.1 200 OK'), json: redeemed }}
          note={`The terms in "expect" say what this request sells and costs, so a credential paid for something cheaper is refused. ${REPEATED[run.terms.protocol]}`}
        />
      )
    case 'deliver':
      return receipt ? (
        <Exchange
          step={step}
          requestTitle="Your response"
          request={http(`HTTP/1.1 200 OK\nPayment-Receipt: ${redeemed?.receipt}\n\nHere is your report.`)}
          answerTitle="The receipt, decoded"
          answer={{ code: '', json: receipt }}
        />
      ) : (
        <p>
          HTTP/1.1 200 OK, and the report. L402 has no receipt, and the customer can use the same credential for more requests
          until it expires, unless your server redeems it with <code>"singleUse": true</code>. With MPP there is a receipt, and
          one payment is one delivery.
        </p>
      )
  }
}

type Side = { code: string; language?: CodeLanguage; json?: unknown }
type Sides = {
  step: Step
  request: Side
  answer: Side
  note?: string
  requestTitle?: string
  answerTitle?: string
  decoded?: { title: string; json: unknown }
}

const http = (code: string): Side => ({ code, language: 'http' })

function Exchange({ step, request, answer, note, requestTitle = 'Request', answerTitle = 'Response', decoded }: Sides) {
  return (
    <>
      {note && <p className="small dim">{note}</p>}
      <div className="exchange">
        <div>
          <h3>{requestTitle}</h3>
          <Snippet {...request} label={`${requestTitle}: ${TITLES[step]}`} wraps />
        </div>
        <div>
          <h3>{answerTitle}</h3>
          <Snippet {...answer} label={`${answerTitle}: ${TITLES[step]}`} wraps />
        </div>
      </div>
      {decoded && (
        <details className="folded" open>
          <summary>{decoded.title}</summary>
          <Snippet code="" json={decoded.json} label={decoded.title} wraps isUnfolded />
        </details>
      )}
    </>
  )
}
