import { Button, Group } from '@mantine/core'
import {
  IconActivity,
  IconBolt,
  IconBook,
  IconCode,
  IconCoins,
  IconLayoutDashboard,
  IconLogout,
  IconSettings,
  IconTopologyStar3,
} from '@tabler/icons-react'
import { Link } from '@tanstack/react-router'
import { signOut } from '../../api/auth.ts'
import { leaveAfter } from '../../api/session.ts'
import type { Me } from '../../api/types.ts'
import { Problem } from '../problem.tsx'
import { useAction } from '../use-action.ts'
import { ThemeToggle } from './theme-toggle.tsx'

const PLACES = [
  { to: '/', name: 'Overview', icon: IconLayoutDashboard },
  { to: '/nodes', name: 'Nodes', icon: IconTopologyStar3 },
  { to: '/gateway', name: 'Gateway', icon: IconBolt },
  { to: '/developers', name: 'Developers', icon: IconCode },
  { to: '/credit', name: 'Credit', icon: IconCoins },
  { to: '/activity', name: 'Activity', icon: IconActivity },
  { to: '/settings', name: 'Settings', icon: IconSettings },
] as const

export function Navigation() {
  return (
    <nav aria-label="Main">
      <ul className="nav">
        {PLACES.map(({ to, name, icon: Icon }) => (
          <li key={to}>
            <Link to={to} activeOptions={{ exact: to === '/', includeSearch: false }} activeProps={{ 'aria-current': 'page' }}>
              <Icon size={20} aria-hidden />
              {name}
            </Link>
          </li>
        ))}
        <li>
          <a href="/docs/">
            <IconBook size={20} aria-hidden />
            Documentation
          </a>
        </li>
      </ul>
    </nav>
  )
}

export function SidebarFooter({ me }: { me: Me }) {
  const leave = useAction(() => leaveAfter(signOut))
  return (
    <div className="side-foot">
      <div dir="auto">{me.user?.email}</div>
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
      <div>Version {me.version}</div>
    </div>
  )
}
