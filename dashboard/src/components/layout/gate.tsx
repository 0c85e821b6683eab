import { useSuspenseQuery } from '@tanstack/react-query'
import { type ReactNode, useEffect, useRef } from 'react'
import { meQuery } from '../../api/queries.ts'
import { Logo } from './logo.tsx'
import { useTitle } from './page.tsx'
import { Ribbon } from './ribbon.tsx'

/** The frame of the pages before the session. */
export function Gate({ title, children }: { title: string; children: ReactNode }) {
  const { data: me } = useSuspenseQuery(meQuery)
  const card = useRef<HTMLDivElement>(null)
  useTitle(title)
  // There is one thing to do on these pages, and that is to fill them in.
  useEffect(() => card.current?.querySelector<HTMLInputElement>('input:not([readonly])')?.focus(), [])
  return (
    <>
      {me.isSandbox && <Ribbon />}
      <main className="gate">
        <div className="brand">
          <Logo />
          Boltyard
        </div>
        <div className="card gate-card" ref={card}>
          <h1 className="section-title">{title}</h1>
          <OtherOrigin origins={me.origins} />
          {children}
        </div>
      </main>
    </>
  )
}

/** The service takes changes from its own addresses only: at any other every form would fail without a reason. */
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
