import { Button, Group, TextInput } from '@mantine/core'
import { IconAlertTriangle, IconClockOff, IconPlayerPause, IconSearch, IconSparkles } from '@tabler/icons-react'
import { useQuery } from '@tanstack/react-query'
import { useLocation } from '@tanstack/react-router'
import { Fragment, useEffect, useRef, useState } from 'react'
import { subjectsQuery } from '../../api/activity.ts'
import { api } from '../../api/client.ts'
import { queryClient } from '../../api/queries.ts'
import type { ApiKey } from '../../api/types.ts'
import { ConfirmDialog } from '../../components/dialogs/confirm-dialog.tsx'
import { EmptyState } from '../../components/empty-state.tsx'
import { announce } from '../../components/layout/announcer.tsx'
import { TextLink } from '../../components/layout/links.tsx'
import { Problem } from '../../components/problem.tsx'
import { Status } from '../../components/status.tsx'
import { Time } from '../../components/time.tsx'
import { useAction } from '../../components/use-action.ts'
import { counted } from '../../text/format.ts'
import { EditKeyDialog } from './key-dialog.tsx'
import { isMeant } from './key-search.ts'
import { KeyUse } from './key-use.tsx'
import { RotateKeyDialog } from './rotate-dialog.tsx'
import { SCOPES } from './scopes.ts'

/** With at least this many keys, there is a search field. */
const MANY = 8
/** With more keys, the others are shown on request: the quick start is below the list. */
const MOST_SHOWN = 10
const SOON_SECONDS = 3 * 86_400

type Props = { keys: ApiKey[]; newId: string | null; onRotated: (key: ApiKey & { key: string }) => void }

/** Newest first: people look for the key they have just created. */
export function KeyList({ keys, newId, onRotated }: Props) {
  const [search, setSearch] = useState('')
  const [isAll, setAll] = useState(false)
  const { hash } = useLocation()
  const list = useRef<HTMLUListElement>(null)
  // The button that had the focus is gone.
  useEffect(() => {
    if (isAll) list.current?.children[MOST_SHOWN]?.querySelector<HTMLElement>('button, a')?.focus()
  }, [isAll])
  const found = keys.toReversed().filter((key) => isMeant(key, search))
  // The command palette can link to a key, which must then not be hidden.
  const isFolded = !isAll && found.length > MOST_SHOWN && !found.slice(MOST_SHOWN).some(({ id }) => id === hash)
  const shown = isFolded ? found.slice(0, MOST_SHOWN) : found
  return (
    <>
      {keys.length >= MANY && (
        <TextInput
          aria-label="Find a key"
          placeholder="Find a key by name or first characters"
          type="search"
          dir="auto"
          mb="sm"
          leftSection={<IconSearch size={16} aria-hidden />}
          value={search}
          onChange={(event) => setSearch(event.currentTarget.value)}
        />
      )}
      {found.length === 0 ? (
        <NoneFound search={search} onShowAll={() => setSearch('')} />
      ) : (
        <ul className="card list rows" aria-label="API keys" ref={list}>
          {shown.map((key) => (
            <Row key={key.id} item={key} isNew={key.id === newId} onRotated={onRotated} />
          ))}
        </ul>
      )}
      {isFolded && (
        <Group justify="center" mt="md">
          <Button variant="default" onClick={() => setAll(true)}>
            Show all {found.length} keys
          </Button>
        </Group>
      )}
      {search === '' && <Revoked />}
    </>
  )
}

/** The service names at most this many keys, so with as many, there may be more. */
const MOST_NAMED = 500

function Revoked() {
  const { data: subjects } = useQuery(subjectsQuery)
  const count = subjects?.keys.filter(({ isGone }) => isGone).length ?? 0
  if (subjects === undefined || count === 0) return null
  return (
    <p className="small dim">
      {subjects.keys.length < MOST_NAMED ? counted(count, 'revoked key is', 'revoked keys are') : 'Revoked keys are'} not listed.{' '}
      <TextLink to="/activity" search={{ kind: 'keys' }}>
        Activity
      </TextLink>{' '}
      says who revoked {count === 1 ? 'it' : 'them'}.
    </p>
  )
}

const MOST_REVOKED = 5

/** People who look for a key that is gone want to know who revoked it. */
function NoneFound({ search, onShowAll }: { search: string; onShowAll: () => void }) {
  const { data: subjects, isPending } = useQuery(subjectsQuery)
  const gone = subjects?.keys.filter((key) => key.isGone && isMeant(key, search)) ?? []
  return (
    <EmptyState
      art="search"
      title={titleOf(isPending, gone.length)}
      sentence={
        gone.length > 0 && gone.length <= MOST_REVOKED ? (
          gone.map(({ id, name }, place) => (
            <Fragment key={id}>
              {place > 0 && <br />}
              <bdi>{name}</bdi> was revoked.{' '}
              <TextLink to="/activity" search={{ keyId: id }}>
                Who revoked it?
              </TextLink>
            </Fragment>
          ))
        ) : (
          <>
            Revoked keys are not listed.{' '}
            <TextLink to="/activity" search={{ kind: 'keys' }}>
              Activity
            </TextLink>{' '}
            says who revoked them.
          </>
        )
      }
      action={
        <Button variant="default" onClick={onShowAll}>
          Show all keys
        </Button>
      }
    />
  )
}

/** “No key matches” is not shown next to a revoked key, nor before it is known whether there is one. */
function titleOf(isPending: boolean, gone: number): string | undefined {
  if (gone > MOST_REVOKED) return `${gone} revoked keys match this search.`
  return isPending || gone > 0 ? undefined : 'No key matches this search.'
}

function Row({ item, isNew, onRotated }: { item: ApiKey; isNew: boolean; onRotated: Props['onRotated'] }) {
  const [open, setOpen] = useState<'edit' | 'rotate' | 'revoke' | null>(null)
  const close = () => setOpen(null)
  const change = useAction(async () => {
    await api.patch(`/keys/${item.id}`, { disabled: !item.disabled })
    announce(
      <>
        <bdi>{item.name}</bdi>: {item.disabled ? 'enabled' : 'disabled'}
      </>,
    )
    await queryClient.invalidateQueries({ queryKey: ['keys'] })
  })
  const button = { size: 'compact-sm', variant: 'subtle', color: 'gray' } as const
  return (
    <li className="row" id={item.id}>
      <div className="row-main">
        <div className="key-title">
          <strong>
            <bdi>{item.name}</bdi>
          </strong>
          <span className="mono dim">{item.prefix}…</span>
          {isNew && <Status word="New" tone="good" icon={IconSparkles} />}
          <KeyBadge item={item} />
        </div>
        <ul className="badges" aria-label="Permissions">
          {item.scopes.map((scope) => (
            <li key={scope} className="badge" title={scope}>
              {SCOPES[scope].name}
            </li>
          ))}
        </ul>
        <div className="small dim">
          <Lifetime item={item} />
        </div>
        <Problem error={change.error} what="The key was not changed." />
      </div>
      <KeyUse item={item} />
      <Group gap={2} className="key-actions">
        <Button {...button} aria-label={`Edit ${item.name}`} onClick={() => setOpen('edit')}>
          Edit
        </Button>
        {!item.isExpired && (
          <Button {...button} aria-label={`Rotate ${item.name}`} onClick={() => setOpen('rotate')}>
            Rotate
          </Button>
        )}
        <Button
          {...button}
          loading={change.isPending}
          aria-label={`${item.disabled ? 'Enable' : 'Disable'} ${item.name}`}
          onClick={() => void change.run()}
        >
          {item.disabled ? 'Enable' : 'Disable'}
        </Button>
        <Button {...button} aria-label={`Revoke ${item.name}`} onClick={() => setOpen('revoke')}>
          Revoke
        </Button>
      </Group>
      {open === 'edit' && <EditKeyDialog item={item} onClose={close} />}
      {open === 'rotate' && (
        <RotateKeyDialog
          item={item}
          onCancel={close}
          onRotated={(rotated) => {
            close()
            onRotated(rotated)
          }}
        />
      )}
      {open === 'revoke' && <RevokeDialog item={item} onClose={close} />}
    </li>
  )
}

function KeyBadge({ item }: { item: ApiKey }) {
  if (item.isExpired) return <Status word="Expired" tone="bad" icon={IconClockOff} />
  if (item.disabled) return <Status word="Disabled" tone="idle" icon={IconPlayerPause} />
  if (item.expiresAt !== null && item.expiresAt < Date.now() / 1000 + SOON_SECONDS)
    return <Status word="Expires soon" tone="warn" icon={IconAlertTriangle} />
  return null
}

/** One line for each fact, so that text does not jump to the next line when a time changes. */
function Lifetime({ item: { createdAt, lastUsedAt, expiresAt, isExpired, rotatedAt, previousSecretUntil } }: { item: ApiKey }) {
  return (
    <>
      <div>
        created <Time at={createdAt} /> ·{' '}
        {lastUsedAt === null ? (
          'never used'
        ) : (
          <>
            last used <Time at={lastUsedAt} />
          </>
        )}
      </div>
      {expiresAt !== null && (
        <div>
          {isExpired ? 'expired' : 'expires'} <Time at={expiresAt} />
        </div>
      )}
      {rotatedAt !== null && (
        <div>
          rotated <Time at={rotatedAt} />
          {previousSecretUntil !== null && (
            <>
              {' '}
              · the earlier secret stops working <Time at={previousSecretUntil} />
            </>
          )}
        </div>
      )}
    </>
  )
}

function RevokeDialog({ item, onClose }: { item: ApiKey; onClose: () => void }) {
  const revoke = useAction(async () => {
    await api.delete(`/keys/${item.id}`)
    onClose()
    announce(
      <>
        <bdi>{item.name}</bdi> was revoked
      </>,
    )
    await queryClient.invalidateQueries({ queryKey: ['keys'] })
  })
  return (
    <ConfirmDialog
      title={
        <>
          Revoke <bdi>{item.name}</bdi>?
        </>
      }
      verb="Revoke key"
      isDangerous
      isPending={revoke.isPending}
      onCancel={onClose}
      onConfirm={() => void revoke.run()}
    >
      <p>
        Requests with the key <span className="mono">{item.prefix}…</span> will be refused. This cannot be undone. To block the
        key temporarily, disable it instead.
      </p>
      <Problem error={revoke.error} what="The key was not revoked." />
    </ConfirmDialog>
  )
}
