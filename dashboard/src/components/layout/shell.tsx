import { Burger, Drawer } from '@mantine/core'
import { useQuery, useSuspenseQuery } from '@tanstack/react-query'
import { Link, Outlet, useLocation } from '@tanstack/react-router'
import { Suspense, useEffect, useRef, useState } from 'react'
import { listen, useConnection } from '../../api/events.ts'
import { meQuery, nodesQuery, queryClient } from '../../api/queries.ts'
import { leaveSession } from '../../api/session.ts'
import { nodeWord } from '../status.tsx'
import { announce } from './announcer.tsx'
import { CreditBanner } from './credit-banner.tsx'
import { preloadPages } from './lazy-page.tsx'
import { Logo } from './logo.tsx'
import { Navigation, SideFoot } from './navigation.tsx'
import { Ribbon } from './ribbon.tsx'

export function Shell() {
  const { data: me } = useSuspenseQuery(meQuery)
  const [isOpen, setOpen] = useState(false)
  const { pathname } = useLocation()

  // biome-ignore lint/correctness/useExhaustiveDependencies: another page means that the menu has done its work
  useEffect(() => setOpen(false), [pathname])
  useEffect(() => listen(askWhoAmI), [])
  useEffect(preloadPages, [])
  useSamePerson(me.user?.id ?? null)
  useStatusAnnouncements()

  return (
    <div className="frame">
      <a className="skip" href="#content">
        Skip to content
      </a>
      {me.isSandbox && <Ribbon />}
      <LostConnection />
      <CreditBanner />
      <div className="shell">
        <header className="side">
          <div className="side-head">
            <Brand />
            <Navigation />
          </div>
          <SideFoot me={me} />
        </header>
        <header className="top">
          <Burger opened={isOpen} onClick={() => setOpen(!isOpen)} aria-label="Menu" aria-expanded={isOpen} size="sm" />
          <Brand />
        </header>
        <Drawer
          opened={isOpen}
          onClose={() => setOpen(false)}
          size={280}
          title={<Brand />}
          lockScroll={false}
          closeButtonProps={{ 'aria-label': 'Close menu' }}
          transitionProps={{ duration: 120 }}
        >
          <Navigation />
          <SideFoot me={me} />
        </Drawer>
        <main id="content" className="content" tabIndex={-1}>
          <Suspense>
            <Outlet />
          </Suspense>
        </main>
      </div>
    </div>
  )
}

const Brand = () => (
  <Link to="/" className="brand" aria-label="Boltyard, overview">
    <Logo />
    Boltyard
  </Link>
)

/** Asked when the event stream breaks: a session that is over is not a connection that is lost. */
function askWhoAmI(): void {
  queryClient.fetchQuery({ ...meQuery, staleTime: 0, retry: false }).then(
    (me) => {
      if (!me.user) leaveSession()
    },
    () => {},
  )
}

/** Somebody signed in as somebody else in another tab: what this one holds in memory is not theirs to see. */
function useSamePerson(userId: string | null): void {
  const first = useRef(userId)
  useEffect(() => {
    if (userId === null) leaveSession()
    else if (userId !== first.current) window.location.reload()
  }, [userId])
}

/** For those who do not see a badge change its colour. */
function useStatusAnnouncements(): void {
  const { data: nodes } = useQuery(nodesQuery)
  const known = useRef(new Map<string, string>())
  useEffect(() => {
    for (const node of nodes ?? []) {
      const before = known.current.get(node.id)
      const word = nodeWord(node)
      if (before !== undefined && before !== word) announce(`${node.name}: ${word}`)
      known.current.set(node.id, word)
    }
  }, [nodes])
}

const PATIENCE_MS = 4000

/** Not for a blink: a restart of the service takes a few seconds, and a banner that comes and goes only moves the page. */
function LostConnection() {
  const connection = useConnection()
  const [isShown, setShown] = useState(false)
  useEffect(() => {
    if (connection !== 'lost') return setShown(false)
    const timer = setTimeout(() => setShown(true), PATIENCE_MS)
    return () => clearTimeout(timer)
  }, [connection])
  return (
    <div role="status" aria-live="polite">
      {isShown && (
        <div className="banner banner-warn">
          The connection to the service is lost. What you see may be old; it reconnects by itself and catches up.
        </div>
      )}
    </div>
  )
}
