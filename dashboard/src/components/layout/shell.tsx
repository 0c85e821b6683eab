import { Burger, Drawer } from '@mantine/core'
import { useQuery, useSuspenseQuery } from '@tanstack/react-query'
import { Link, Outlet, useLocation } from '@tanstack/react-router'
import { Suspense, useEffect, useRef, useState } from 'react'
import { listen, useConnection } from '../../api/events.ts'
import { meQuery, nodesQuery, queryClient } from '../../api/queries.ts'
import { leaveSession } from '../../api/session.ts'
import { PaletteButton } from '../palette/button.tsx'
import { PaletteHost } from '../palette/host.tsx'
import { nodeWord } from '../status.tsx'
import { announce } from './announcer.tsx'
import { CreditBanner } from './credit-banner.tsx'
import { preloadPages } from './lazy-page.tsx'
import { Wordmark } from './logo.tsx'
import { Navigation, SidebarFooter } from './navigation.tsx'
import { Ribbon } from './ribbon.tsx'

export function Shell() {
  const { data: me } = useSuspenseQuery(meQuery)
  const [isOpen, setOpen] = useState(false)
  const { pathname } = useLocation()

  // biome-ignore lint/correctness/useExhaustiveDependencies: a change of page closes the menu
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
            <PaletteButton />
            <Navigation />
          </div>
          <SidebarFooter me={me} />
        </header>
        <header className="top">
          <Burger opened={isOpen} onClick={() => setOpen(!isOpen)} aria-label="Menu" aria-expanded={isOpen} size="sm" />
          <Brand />
          <PaletteButton isSmall />
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
          <SidebarFooter me={me} />
        </Drawer>
        <main id="content" className="content" tabIndex={-1}>
          <div className="brand print-only">
            <Wordmark />
          </div>
          <Suspense>
            <Outlet />
          </Suspense>
        </main>
      </div>
      <PaletteHost />
    </div>
  )
}

const Brand = () => (
  <Link to="/" className="brand" aria-label="Boltyard, overview">
    <Wordmark />
  </Link>
)

/** Runs when the event stream breaks, to tell an expired session from a lost connection. */
function askWhoAmI(): void {
  queryClient.fetchQuery({ ...meQuery, staleTime: 0, retry: false }).then(
    (me) => {
      if (!me.user) leaveSession()
    },
    () => {},
  )
}

/** If another person signs in from another tab, they must not see what this tab holds in memory. */
function useSamePerson(userId: string | null): void {
  const first = useRef(userId)
  useEffect(() => {
    if (userId === null) leaveSession()
    else if (userId !== first.current) window.location.reload()
  }, [userId])
}

/** Announces status changes to people who cannot see the badge. */
function useStatusAnnouncements(): void {
  const { data: nodes } = useQuery(nodesQuery)
  const known = useRef(new Map<string, string>())
  useEffect(() => {
    for (const node of nodes ?? []) {
      const before = known.current.get(node.id)
      const word = nodeWord(node)
      if (before !== undefined && before !== word)
        announce(
          <>
            <bdi>{node.name}</bdi>: {word}
          </>,
        )
      known.current.set(node.id, word)
    }
  }, [nodes])
}

const PATIENCE_MS = 4000

/** Shown with a delay: a service restart takes a few seconds, and a brief banner would only shift the page. */
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
          The connection to the service is lost. This page may be out of date. It reconnects automatically.
        </div>
      )}
    </div>
  )
}
