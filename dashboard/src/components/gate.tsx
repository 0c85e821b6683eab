import { useSuspenseQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { meQuery } from '../queries.ts'
import { Logo } from './logo.tsx'
import { useTitle } from './page.tsx'
import { Ribbon } from './ribbon.tsx'

/** The frame of the pages before the session. */
export function Gate({ title, children }: { title: string; children: ReactNode }) {
  const { data: me } = useSuspenseQuery(meQuery)
  useTitle(title)
  return (
    <>
      {me.isSandbox && <Ribbon />}
      <main className="gate">
        <div className="brand">
          <Logo />
          Boltyard
        </div>
        <div className="card gate-card">
          <h1 className="section-title">{title}</h1>
          <OtherOrigin publicUrl={me.publicUrl} />
          {children}
        </div>
      </main>
    </>
  )
}

/** The service takes changes from its own address only: under another name of the same machine every form would fail without a reason. */
function OtherOrigin({ publicUrl }: { publicUrl: string }) {
  const { origin } = new URL(publicUrl)
  if (origin === window.location.origin) return null
  const there = origin + window.location.pathname
  return (
    <p className="note">
      You cannot sign in at this address. The dashboard is at <a href={there}>{there}</a>.
    </p>
  )
}
