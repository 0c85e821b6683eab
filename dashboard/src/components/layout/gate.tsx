import { useSuspenseQuery } from '@tanstack/react-query'
import { type ReactNode, useEffect, useRef } from 'react'
import { meQuery } from '../../api/queries.ts'
import { Illustration } from '../art/illustration.tsx'
import { Wordmark } from './logo.tsx'
import { useTitle } from './page.tsx'
import { Ribbon } from './ribbon.tsx'

/** The frame of the pages shown before signing in. `label`: says in which area the page is, in the same place as after signing in. */
export function Gate({ title, label, children }: { title: string; label?: ReactNode; children: ReactNode }) {
  const { data: me } = useSuspenseQuery(meQuery)
  const card = useRef<HTMLDivElement>(null)
  useTitle(title)
  // The form is the only thing on these pages, so it gets the focus.
  useEffect(() => card.current?.querySelector<HTMLInputElement>('input:not([readonly], [type=checkbox])')?.focus(), [])
  return (
    <>
      {me.isSandbox && <Ribbon />}
      {label}
      <main className="gate">
        <div className="gate-side">
          <div className="brand">
            <Wordmark size={36} />
          </div>
          <p className="gate-claim">Hosted Lightning nodes, and HTTP 402 payments for anything you serve.</p>
          <Illustration of="yard" />
        </div>
        <div className="gate-main">
          <div className="gate-card" ref={card}>
            <h1>{title}</h1>
            <OtherOrigin origins={me.origins} />
            {children}
          </div>
        </div>
      </main>
    </>
  )
}

/** The service accepts changes only from its own origins. At any other address, every form would fail without explanation. */
function OtherOrigin({ origins }: { origins: string[] }) {
  const [origin = ''] = origins
  if (origins.includes(window.location.origin)) return null
  const there = origin + window.location.pathname
  return (
    <p className="note">
      You cannot sign in at this address. The dashboard is at <a href={there}>{there}</a>.
    </p>
  )
}
