import { Button } from '@mantine/core'
import { IconPlus } from '@tabler/icons-react'
import { useQuery, useSuspenseQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { meQuery, nodeBalancesQuery } from '../../api/queries.ts'
import type { CreatedNode } from '../../api/types.ts'
import { CreateNodeDialog } from '../../components/dialogs/create-node-dialog.tsx'
import { SecretsDialog } from '../../components/dialogs/secrets-dialog.tsx'
import { EmptyState } from '../../components/empty-state.tsx'
import { Page } from '../../components/layout/page.tsx'
import { Loading } from '../../components/loading.tsx'
import { Problem } from '../../components/problem.tsx'
import { createNodeCurl } from '../../text/code/snippets.ts'
import { NodeList } from './node-list.tsx'

export function NodesPage() {
  const { data: me } = useSuspenseQuery(meQuery)
  const nodes = useQuery(nodeBalancesQuery)
  const { create: isCreating } = useSearch({ from: '/app/nodes' })
  const navigate = useNavigate()
  // Never in a cache or URL, so the credentials are gone when this page closes.
  const [created, setCreated] = useState<CreatedNode | null>(null)

  // In the URL, so that the back button closes the dialog and the overview can link to it.
  const open = () => void navigate({ to: '/nodes', search: (before) => ({ ...before, create: true }) })
  const close = () => void navigate({ to: '/nodes', search: (before) => ({ ...before, create: undefined }), replace: true })
  const button = (
    <Button leftSection={<IconPlus size={18} aria-hidden />} onClick={open}>
      Create node
    </Button>
  )
  return (
    <Page title="Nodes" actions={!nodes.isPending && nodes.data?.length !== 0 && button}>
      <Problem
        error={nodes.isPending ? null : nodes.data ? null : nodes.error}
        what="Your nodes could not be loaded."
        onRetry={() => void nodes.refetch()}
      />
      {nodes.isPending && <Loading height={220} shape="list" />}
      {nodes.data?.length === 0 && (
        <EmptyState
          art="nodes"
          title="You have no nodes yet."
          sentence="A node receives your payments. Creating one takes a few seconds."
          action={button}
          curl={createNodeCurl(me.publicUrl)}
        />
      )}
      {nodes.data && nodes.data.length > 0 && <NodeList nodes={nodes.data} />}
      {isCreating && !created && <CreateNodeDialog me={me} onCancel={close} onCreated={setCreated} />}
      {created && (
        <Credentials
          created={created}
          isSandbox={me.isSandbox}
          onClose={() => void navigate({ to: '/nodes/$nodeId', params: { nodeId: created.node.id }, replace: true })}
        />
      )}
    </Page>
  )
}

type CredentialsProps = { created: CreatedNode; isSandbox: boolean; onClose: () => void }

function Credentials({ created: { node, credentials }, isSandbox, onClose }: CredentialsProps) {
  return (
    <SecretsDialog
      title={`Store the credentials of ${node.name}`}
      warning={
        isSandbox
          ? 'They are shown only once. This is a sandbox: the node holds only play money, so nothing of value is lost without them.'
          : 'They are shown only once. Without the recovery words, the node’s money is lost if this service is gone.'
      }
      fileName={`boltyard-${node.id}.txt`}
      fileHeading={`Credentials of the Lightning node ${node.name} (${node.id}) at ${node.endpointUrl}`}
      secrets={[
        {
          name: 'Recovery words',
          value: credentials.seed,
          explanation: `Twelve words that restore the node and its ${isSandbox ? 'play ' : ''}money.`,
        },
        {
          name: 'Full password',
          value: credentials.password,
          explanation: 'For the node’s own API: full access, including sending payments.',
        },
        {
          name: 'Restricted password',
          value: credentials.restrictedPassword,
          explanation: 'For the node’s own API: can read and create invoices, but not send payments.',
        },
      ]}
      onClose={onClose}
    />
  )
}
