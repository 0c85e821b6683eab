import { NativeSelect, Table, TextInput } from '@mantine/core'
import { IconChevronDown, IconChevronUp, IconSearch } from '@tabler/icons-react'
import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { type MouseEvent, useMemo } from 'react'
import { receivedByNodeQuery } from '../../api/received.ts'
import type { DashboardNode } from '../../api/types.ts'
import { Amount, Count } from '../../components/amount.tsx'
import { EmptyState } from '../../components/empty-state.tsx'
import { Id } from '../../components/id.tsx'
import { KnownBalance } from '../../components/known-balance.tsx'
import { TextLink } from '../../components/layout/links.tsx'
import { NodeStatus } from '../../components/status.tsx'
import { Time } from '../../components/time.tsx'
import { filteredNodes, NODE_FILTER_NAMES, NODE_FILTERS } from '../../text/node-filter.ts'
import { hasUpdate } from '../../text/updates.ts'
import { directionOf, type NodeColumn, type NodeOrder, orderAfterClick, sortedNodes } from './node-sort.ts'

export function NodeList({ nodes }: { nodes: DashboardNode[] }) {
  const { show, q = '', sort } = useSearch({ from: '/app/nodes' })
  const navigate = useNavigate()
  const shown = useMemo(() => filteredNodes(nodes, show, q), [nodes, show, q])
  // The filters are in the URL, so that Back and a reload keep them.
  const filter = (change: { show?: typeof show; q?: string | undefined; sort?: typeof sort }) =>
    void navigate({ to: '/nodes', search: { show, q: q || undefined, sort, ...change }, replace: true, resetScroll: false })
  return (
    <>
      <div className="node-filters">
        <TextInput
          aria-label="Search nodes"
          placeholder="Search by name, id or version"
          leftSection={<IconSearch size={16} aria-hidden />}
          type="search"
          dir="auto"
          autoComplete="off"
          value={q}
          onChange={(event) => filter({ q: event.currentTarget.value || undefined })}
        />
        <NativeSelect
          aria-label="Status"
          value={show ?? ''}
          data={[
            { value: '', label: 'All statuses' },
            ...NODE_FILTER_NAMES.map((value) => ({ value, label: NODE_FILTERS[value].name })),
          ]}
          onChange={(event) => filter({ show: NODE_FILTER_NAMES.find((one) => one === event.currentTarget.value) })}
        />
        <span className="small dim" role="status">
          {shown.length === nodes.length ? (
            <>
              <Count of={nodes.length} /> {nodes.length === 1 ? 'node' : 'nodes'}
            </>
          ) : (
            <>
              <Count of={shown.length} /> of <Count of={nodes.length} /> nodes
            </>
          )}
        </span>
      </div>
      {shown.length === 0 ? (
        <EmptyState art="search" title="No node matches." action={<TextLink to="/nodes">Show all nodes</TextLink>} />
      ) : (
        <NodeTable nodes={shown} order={sort} onOrder={(order) => filter({ sort: order })} />
      )}
    </>
  )
}

type TableProps = { nodes: DashboardNode[]; order: NodeOrder | undefined; onOrder: (order: NodeOrder) => void }

function NodeTable({ nodes, order, onOrder }: TableProps) {
  const { data: received } = useQuery(receivedByNodeQuery)
  const receivedBy = useMemo(() => received && new Map(received.nodes.map((one) => [one.nodeId, one.sat])), [received])
  const sorted = useMemo(() => sortedNodes(nodes, order, receivedBy), [nodes, order, receivedBy])
  const navigate = useNavigate()
  const header = (column: NodeColumn, label: string, className?: string) => (
    <SortHeader {...{ column, label, className, order, onOrder }} />
  )
  const open = (event: MouseEvent, nodeId: string) => {
    // The link itself handles clicks on it, and selecting text is not a click.
    if ((event.target as Element).closest('a') || window.getSelection()?.type === 'Range') return
    void navigate({ to: '/nodes/$nodeId', params: { nodeId } })
  }
  return (
    <>
      <div className="card list">
        <Table verticalSpacing="sm" aria-label="Nodes">
          <Table.Thead>
            <Table.Tr>
              {header('name', 'Name')}
              <Table.Th className="from-460">Status</Table.Th>
              {header('balance', 'Balance', 'number')}
              {header('received', 'Received, 30 days', 'number from-600')}
              <Table.Th className="from-700">Version</Table.Th>
              {header('created', 'Created', 'from-800')}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {sorted.map((node) => (
              <Table.Tr key={node.id} className="whole-row node-row" onClick={(event) => open(event, node.id)}>
                <Table.Td className="breakable">
                  <Link to="/nodes/$nodeId" params={{ nodeId: node.id }} className="plain-link">
                    <bdi>{node.name}</bdi>
                  </Link>
                  <div className="dim node-id">
                    <Id id={node.id} />
                  </div>
                  <div className="to-460">
                    <NodeStatus node={node} />
                  </div>
                  {node.failureMessage && <div className="small">{node.failureMessage}</div>}
                </Table.Td>
                <Table.Td className="from-460">
                  <NodeStatus node={node} />
                </Table.Td>
                <Table.Td className="number">
                  <KnownBalance node={node} />
                </Table.Td>
                <Table.Td className="number from-600">
                  {receivedBy ? <Amount sat={receivedBy.get(node.id) ?? 0} /> : <span className="dim">…</span>}
                </Table.Td>
                <Table.Td className="from-700">
                  {node.version === null ? <span className="dim">not started yet</span> : shortVersion(node.version)}
                  {hasUpdate(node) && <div className="update-mark">Update available</div>}
                </Table.Td>
                <Table.Td className="from-800">
                  <Time at={node.createdAt} />
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </div>
      <p className="small dim">
        Received counts payments through the gateway and all others. A balance without a time is at most 15 minutes old.
        {/* The last sentence, because it appears late and must not move the others. */}
        {received && (
          <>
            {' '}
            Received was added up <Time at={received.now} />.
            {received.unlistedNodes > 0 &&
              ` For ${received.unlistedNodes === 1 ? 'one node' : `${received.unlistedNodes} nodes`}, only gateway payments are known at the moment.`}
          </>
        )}
      </p>
    </>
  )
}

type HeaderProps = {
  column: NodeColumn
  label: string
  className?: string | undefined
  order: NodeOrder | undefined
  onOrder: (order: NodeOrder) => void
}

function SortHeader({ column, label, className, order, onOrder }: HeaderProps) {
  const direction = directionOf(column, order)
  const Arrow = direction === 'descending' ? IconChevronDown : IconChevronUp
  return (
    <Table.Th className={className} aria-sort={direction}>
      <button type="button" className="sort" onClick={() => onOrder(orderAfterClick(column, order))}>
        {label}
        <Arrow size={14} aria-hidden className={direction ? '' : 'unsorted'} />
      </button>
    </Table.Th>
  )
}

/** Without the commit hash at its end. */
const shortVersion = (version: string): string => version.replace(/-[0-9a-f]{7,}$/, '')
