import { Tabs } from '@mantine/core'
import { useNavigate } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { Page } from './page.tsx'

const SECTIONS = {
  Gateway: [
    { to: '/gateway', name: 'Payments', title: 'Gateway' },
    { to: '/gateway/try-it', name: 'Try it', title: 'Gateway: try it' },
  ],
  Developers: [
    { to: '/developers', name: 'API keys', title: 'Developers' },
    { to: '/developers/requests', name: 'Requests', title: 'Developers: requests' },
    { to: '/developers/webhooks', name: 'Webhooks', title: 'Developers: webhooks' },
  ],
} as const
type Section = keyof typeof SECTIONS
type Props<S extends Section> = { section: S; at: (typeof SECTIONS)[S][number]['to']; children: ReactNode }

/** Several pages under one heading, each with its own URL and chunk. */
export function TabbedPage<S extends Section>({ section, at, children }: Props<S>) {
  const navigate = useNavigate()
  const tabs = SECTIONS[section]
  return (
    <Page title={tabs.find(({ to }) => to === at)?.title ?? section} heading={section}>
      <Tabs value={at} onChange={(value) => void navigate({ to: tabs.find(({ to }) => to === value)?.to ?? at })}>
        <Tabs.List aria-label={`${section} sections`} mb="md">
          {tabs.map(({ to, name }) => (
            <Tabs.Tab key={to} value={to}>
              {name}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        <Tabs.Panel value={at}>{children}</Tabs.Panel>
      </Tabs>
    </Page>
  )
}
