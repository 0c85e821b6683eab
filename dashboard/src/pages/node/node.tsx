import { Tabs } from '@mantine/core'
import { useQuery, useSuspenseQuery } from '@tanstack/react-query'
import { useNavigate, useParams, useSearch } from '@tanstack/react-router'
import { useEffect, useRef } from 'react'
import { liveQuery, meQuery, nodeQuery } from '../../api/queries.ts'
import type { DashboardNode, Me } from '../../api/types.ts'
import { TextLink } from '../../components/layout/links.tsx'
import { Page } from '../../components/layout/page.tsx'
import { Loading } from '../../components/loading.tsx'
import { Problem } from '../../components/problem.tsx'
import { NodeStatus } from '../../components/status.tsx'
import { NODE_TABS, type NodeTab, nodeTabs } from '../../tabs.ts'
import { NodeConnect } from './connect.tsx'
import { NodeInvoicePanel } from './invoice.tsx'
import { NodeLogPanel } from './log.tsx'
import { NodeOverview } from './overview.tsx'
import { NodePayments } from './payments.tsx'
import { NodeSend } from './send.tsx'
import { NodeSettings } from './settings.tsx'

const NAMES: Record<NodeTab, string> = {
  overview: 'Overview',
  payments: 'Payments',
  connect: 'Connect',
  invoice: 'Invoice',
  send: 'Send',
  log: 'Log',
  settings: 'Settings',
}

export function NodePage() {
  const { nodeId } = useParams({ from: '/app/nodes/$nodeId' })
  const { tab = 'overview' } = useSearch({ from: '/app/nodes/$nodeId' })
  const navigate = useNavigate()
  const { data: me } = useSuspenseQuery(meQuery)
  const { data: node, error, refetch } = useQuery(nodeQuery(nodeId))
  const { data: live } = useQuery({ ...liveQuery(nodeId), enabled: node?.status === 'ready' })
  // This page has just asked the node itself, so `live` is newer than what the service recorded.
  const shown = node && live && node.status === 'ready' ? { ...node, isSilent: !live.isReachable } : node

  const tabs = useRef<HTMLDivElement>(null)
  // In a narrow window, the row of tabs scrolls, so the selected tab must be scrolled into view.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the selected tab changes with these
  useEffect(() => {
    const selected = tabs.current?.querySelector<HTMLElement>('[aria-selected=true]')
    if (tabs.current && selected)
      tabs.current.scrollLeft = selected.offsetLeft - (tabs.current.clientWidth - selected.offsetWidth) / 2
  }, [tab, node === undefined])

  const show = (value: string | null) => {
    const chosen = NODE_TABS.find((one) => one === value)
    void navigate({
      to: '/nodes/$nodeId',
      params: { nodeId },
      search: { tab: chosen === 'overview' ? undefined : chosen },
      // Switching tabs should not scroll to the top.
      resetScroll: false,
    })
  }
  return (
    <Page
      key={nodeId}
      title={node ? `${node.name}: ${NAMES[tab]}` : 'Node'}
      heading={
        node ? (
          <>
            <bdi>{node.name}</bdi> <NodeStatus node={shown ?? node} />
          </>
        ) : (
          'Node'
        )
      }
      trail={
        <nav aria-label="Breadcrumb">
          <ol className="breadcrumb">
            <li>
              <TextLink to="/nodes">Nodes</TextLink>
            </li>
            <li className="dim" aria-current="page">
              <bdi>{node?.name ?? nodeId}</bdi>
            </li>
          </ol>
        </nav>
      }
    >
      {!node && error && <Problem error={error} what="This node could not be loaded." onRetry={() => void refetch()} />}
      {!node && !error && <Loading height={420} />}
      {node && (
        <Tabs value={tab} onChange={show}>
          <Tabs.List aria-label="Node sections" mb="md" ref={tabs}>
            {nodeTabs(node, tab).map((one) => (
              <Tabs.Tab key={one} value={one}>
                {NAMES[one]}
              </Tabs.Tab>
            ))}
          </Tabs.List>
          <Tabs.Panel value={tab}>
            <Panel tab={tab} node={node} me={me} />
          </Tabs.Panel>
        </Tabs>
      )}
    </Page>
  )
}

function Panel({ tab, node, me }: { tab: NodeTab; node: DashboardNode; me: Me }) {
  switch (tab) {
    case 'overview':
      return <NodeOverview node={node} me={me} />
    case 'payments':
      return <NodePayments node={node} />
    case 'connect':
      return <NodeConnect node={node} me={me} />
    case 'invoice':
      return <NodeInvoicePanel node={node} me={me} />
    case 'send':
      return <NodeSend node={node} me={me} />
    case 'log':
      return <NodeLogPanel node={node} />
    case 'settings':
      return <NodeSettings node={node} me={me} />
  }
}
