import '../../styles/developers.css'
import { Button } from '@mantine/core'
import { IconPlus } from '@tabler/icons-react'
import { useQuery, useSuspenseQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { subjectsQuery } from '../../api/activity.ts'
import { keysQuery, meQuery } from '../../api/queries.ts'
import { SecretsDialog } from '../../components/dialogs/secrets-dialog.tsx'
import { EmptyState } from '../../components/empty-state.tsx'
import { TabbedPage } from '../../components/layout/tabbed-page.tsx'
import { Loading } from '../../components/loading.tsx'
import { Problem } from '../../components/problem.tsx'
import { whoAmICurl } from '../../text/code/snippets.ts'
import { type CreatedKey, CreateKeyDialog } from './key-dialog.tsx'
import { KeyList } from './key-list.tsx'
import { QuickStart } from './quick-start.tsx'

export function DevelopersPage() {
  const { data: me } = useSuspenseQuery(meQuery)
  const keys = useQuery(keysQuery)
  const subjects = useQuery(subjectsQuery)
  // In the URL, so that the command palette can open the dialog.
  const { create: isCreating } = useSearch({ from: '/app/developers' })
  const navigate = useNavigate()
  const setCreating = (isOpen: boolean) =>
    void navigate({ to: '/developers', search: { create: isOpen || undefined }, replace: !isOpen })
  const [created, setCreated] = useState<CreatedKey | null>(null)
  const [newId, setNewId] = useState<string | null>(null)
  const [rotated, setRotated] = useState<CreatedKey | null>(null)
  const button = (
    <Button leftSection={<IconPlus size={18} aria-hidden />} onClick={() => setCreating(true)}>
      Create API key
    </Button>
  )
  return (
    <TabbedPage section="Developers" at="/developers">
      <section aria-labelledby="keys">
        <div className="page-head">
          <h2 id="keys" className="section-title">
            API keys
          </h2>
          {/* Shown only once its place is known: the button must not move while someone clicks it. */}
          {!keys.isPending && keys.data?.length !== 0 && button}
        </div>
        {!keys.data && <Problem error={keys.error} what="Your keys could not be loaded." onRetry={() => void keys.refetch()} />}
        {keys.isPending && <Loading height={700} shape="list" />}
        {keys.data?.length === 0 && (
          <EmptyState
            art="keys"
            title="You have no API keys yet."
            sentence="Your programs send one with each request."
            action={button}
            curl={whoAmICurl(me.publicUrl)}
          />
        )}
        {keys.data && keys.data.length > 0 && <KeyList keys={keys.data} newId={newId} onRotated={setRotated} />}
      </section>
      {/* Rendered once the keys and the line below them are loaded, because they would push it down. */}
      {!keys.isPending && !subjects.isPending && <QuickStart me={me} />}
      {isCreating && (
        <CreateKeyDialog
          onCancel={() => setCreating(false)}
          onCreated={(key) => {
            setCreating(false)
            setCreated(key)
            setNewId(key.id)
          }}
        />
      )}
      {created && (
        <SecretsDialog
          title={`Store the key ${created.name}`}
          warning="It is shown only once. Store it outside your code, for example in the environment variable SERVICE_API_KEY."
          fileName={`boltyard-${created.id}.txt`}
          fileHeading={`API key ${created.name} (${created.id}) with ${created.scopes.join(', ')} at ${me.publicUrl}/v1`}
          secrets={[{ name: 'API key', value: created.key, explanation: 'Sent as Authorization: Bearer with each request.' }]}
          onClose={() => setCreated(null)}
        />
      )}
      {rotated && (
        <SecretsDialog
          title={`Store the new secret of ${rotated.name}`}
          warning="It is shown only once. Put it where your program reads the current one, for example in the environment variable SERVICE_API_KEY."
          fileName={`boltyard-${rotated.id}.txt`}
          fileHeading={`API key ${rotated.name} (${rotated.id}), rotated, with ${rotated.scopes.join(', ')} at ${me.publicUrl}/v1`}
          secrets={[{ name: 'API key', value: rotated.key, explanation: 'Sent as Authorization: Bearer with each request.' }]}
          onClose={() => setRotated(null)}
        />
      )}
    </TabbedPage>
  )
}
