import { Burger, Button, Drawer, Group } from '@mantine/core'
import { IconActivity, IconChartBar, IconLogout, IconServer, IconTopologyStar3, IconTrash, IconUsers } from '@tabler/icons-react'
import { Link, useLocation } from '@tanstack/react-router'
import { type ReactNode, useEffect, useState } from 'react'
import { signOutAsOperator } from '../../api/operator.ts'
import type { Me } from '../../api/types.ts'
import { TextLink } from '../../components/layout/links.tsx'
import { Wordmark } from '../../components/layout/logo.tsx'
import { Ribbon } from '../../components/layout/ribbon.tsx'
import { ThemeToggle } from '../../components/layout/theme-toggle.tsx'
import { Problem } from '../../components/problem.tsx'
import { useAction } from '../../components/use-action.ts'
import { clockTime } from '../../text/days.ts'

const PLACES = [
  { section: 'accounts', name: 'Accounts', icon: IconUsers },
  { section: 'nodes', name: 'Nodes', icon: IconTopologyStar3 },
  { section: 'deleted', name: 'Deleted nodes', icon: IconTrash },
  { section: 'installation', name: 'Hosts and versions', icon: IconServer },
  { section: 'statistics', name: 'Statistics', icon: IconChartBar },
  { section: 'background', name: 'Background work', icon: IconActivity },
] as const
export type Section = (typeof PLACES)[number]['section']

const TO = '/operator/{-$section}/{-$id}'

export const OperatorLink = ({ section, id, children }: { section: Section; id?: string; children: ReactNode }) => (
  <TextLink to={TO} params={{ section, id }}>
    {children}
  </TextLink>
)

type Props = { me: Me; expiresAt: number | null; children: ReactNode }

/** Like the frame of the other pages, but in another color and with a label, so that nobody mistakes one area for the other. */
export function OperatorShell({ me, expiresAt, children }: Props) {
  const [isOpen, setOpen] = useState(false)
  const { pathname } = useLocation()
  // biome-ignore lint/correctness/useExhaustiveDependencies: a change of page closes the menu
  useEffect(() => setOpen(false), [pathname])
  const foot = <Foot me={me} expiresAt={expiresAt} />
  return (
    <div className="frame">
      <a className="skip" href="#content">
        Skip to content
      </a>
      {me.isSandbox && <Ribbon />}
      <OperatorLabel />
      <div className="shell">
        {/* Not a header element: it would be a banner, and so would the top bar, but a page may have only one. */}
        <section className="side operator-side" aria-label="Sidebar">
          <div className="side-head">
            <Brand />
            <Navigation />
          </div>
          {foot}
        </section>
        <section className="top" aria-label="Top bar">
          <Burger opened={isOpen} onClick={() => setOpen(!isOpen)} aria-label="Menu" aria-expanded={isOpen} size="sm" />
          <Brand />
        </section>
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
          {foot}
        </Drawer>
        <main id="content" className="content" tabIndex={-1}>
          {children}
        </main>
      </div>
    </div>
  )
}

export const OperatorLabel = () => (
  <aside className="operator-label" aria-label="Area">
    Operator area: all customers
  </aside>
)

const Brand = () => (
  <Link to={TO} params={{ section: undefined, id: undefined }} className="brand" aria-label="Boltyard operator, accounts">
    <Wordmark area="operator" />
  </Link>
)

function Navigation() {
  const { pathname } = useLocation()
  const current = pathname.split('/')[2] || 'accounts'
  return (
    <nav aria-label="Operator">
      <ul className="nav">
        {PLACES.map(({ section, name, icon: Icon }) => (
          <li key={section}>
            <Link to={TO} params={{ section, id: undefined }} aria-current={section === current ? 'page' : undefined}>
              <Icon size={20} aria-hidden />
              {name}
            </Link>
          </li>
        ))}
      </ul>
    </nav>
  )
}

function Foot({ me, expiresAt }: Pick<Props, 'me' | 'expiresAt'>) {
  const leave = useAction(signOutAsOperator)
  return (
    <div className="side-foot">
      {expiresAt !== null && (
        <div>
          Session ends at <time dateTime={new Date(expiresAt * 1000).toISOString()}>{clockTime(expiresAt)}</time>
        </div>
      )}
      <Group gap={6} my="xs" wrap="nowrap">
        <Button
          size="xs"
          variant="default"
          leftSection={<IconLogout size={15} aria-hidden />}
          loading={leave.isPending}
          onClick={() => void leave.run()}
        >
          Sign out
        </Button>
        <ThemeToggle />
      </Group>
      <Problem error={leave.error} what="Signing out failed." again="Check your connection and try again." />
      <TextLink to="/">Customer dashboard</TextLink>
      <div>Version {me.version}</div>
    </div>
  )
}
