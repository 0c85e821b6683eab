import { Tabs } from '@mantine/core'
import { useNavigate } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { Page } from './page.tsx'

/** Two places under one heading; each has its own address and is loaded by itself. */
export function GatewayTabs({ place, children }: { place: 'payments' | 'try-it'; children: ReactNode }) {
  const navigate = useNavigate()
  return (
    <Page title={place === 'payments' ? 'Gateway' : 'Gateway: try it'} heading="Gateway">
      <Tabs value={place} onChange={(value) => void navigate({ to: value === 'try-it' ? '/gateway/try-it' : '/gateway' })}>
        <Tabs.List aria-label="Parts of the gateway" mb="md">
          <Tabs.Tab value="payments">Payments</Tabs.Tab>
          <Tabs.Tab value="try-it">Try it</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value={place}>{children}</Tabs.Panel>
      </Tabs>
    </Page>
  )
}
