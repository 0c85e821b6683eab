import { Tabs } from '@mantine/core'
import { useNavigate } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { Page } from './page.tsx'

/** Two pages under one heading, each with its own URL and chunk. */
export function GatewayTabs({ place, children }: { place: 'payments' | 'try-it'; children: ReactNode }) {
  const navigate = useNavigate()
  return (
    <Page title={place === 'payments' ? 'Gateway' : 'Gateway: try it'} heading="Gateway">
      <Tabs value={place} onChange={(value) => void navigate({ to: value === 'try-it' ? '/gateway/try-it' : '/gateway' })}>
        <Tabs.List aria-label="Gateway sections" mb="md">
          <Tabs.Tab value="payments">Payments</Tabs.Tab>
          <Tabs.Tab value="try-it">Try it</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value={place}>{children}</Tabs.Panel>
      </Tabs>
    </Page>
  )
}
