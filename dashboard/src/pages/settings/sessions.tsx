import { Button, Group } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { signOutEverywhere } from '../../api/auth.ts'
import { queryClient } from '../../api/queries.ts'
import { leaveAfter } from '../../api/session.ts'
import { endOtherSessions, endSession, type SeenSession, sessionsQuery } from '../../api/settings.ts'
import { ConfirmDialog } from '../../components/dialogs/confirm-dialog.tsx'
import { announce } from '../../components/layout/announcer.tsx'
import { Problem } from '../../components/problem.tsx'
import { Time } from '../../components/time.tsx'
import { useAction } from '../../components/use-action.ts'
import { deviceOf, methodOf } from '../../text/device.ts'

const refresh = () => queryClient.invalidateQueries({ queryKey: sessionsQuery.queryKey })

export function Sessions() {
  const sessions = useQuery(sessionsQuery)
  const [isAsking, setAsking] = useState(false)
  const others = useAction(async () => {
    await endOtherSessions()
    announce('All other sessions have been signed out')
    await refresh()
  })
  const everywhere = useAction(() => leaveAfter(signOutEverywhere))
  // The current session comes first. The server lists the newest first.
  const listed = [...(sessions.data ?? [])].sort((a, b) => Number(b.isCurrent) - Number(a.isCurrent))
  return (
    <section className="card" aria-labelledby="sessions">
      <h2 id="sessions">Sessions</h2>
      <p className="small dim">
        Where you are signed in. Devices are named by what their browsers say about themselves. A session ends after about a week
        without use.
      </p>
      {!sessions.data && (
        <Problem error={sessions.error} what="Your sessions could not be loaded." onRetry={() => void sessions.refetch()} />
      )}
      {listed.length > 0 && (
        <ul className="rows" aria-label="Sessions">
          {listed.map((session) => (
            <Row key={session.id} session={session} />
          ))}
        </ul>
      )}
      <Problem error={others.error} what="The other sessions were not signed out." />
      <Group mt="md">
        {listed.length > 1 && (
          <Button variant="default" loading={others.isPending} onClick={() => void others.run()}>
            Sign out all others
          </Button>
        )}
        <Button variant="default" onClick={() => setAsking(true)}>
          Sign out everywhere…
        </Button>
      </Group>
      {isAsking && (
        <ConfirmDialog
          title="Sign out everywhere?"
          verb="Sign out everywhere"
          isPending={everywhere.isPending}
          onCancel={() => setAsking(false)}
          onConfirm={() => void everywhere.run()}
        >
          <p>
            All your sessions end, including this one, and open sign-in links stop working. API keys and nodes are not affected.
          </p>
          <Problem error={everywhere.error} what="Signing out everywhere failed." />
        </ConfirmDialog>
      )}
    </section>
  )
}

function Row({ session }: { session: SeenSession }) {
  const device = deviceOf(session.userAgent)
  const end = useAction(async () => {
    await endSession(session.id)
    announce(`Signed out: ${device}`)
    await refresh()
  })
  return (
    <li className="session">
      <div className="session-main">
        <div>
          <strong title={session.userAgent ?? undefined}>{device}</strong>{' '}
          {session.isCurrent && <span className="status status-good">This one</span>}
        </div>
        <div className="small dim">
          {session.isCurrent ? (
            'In use now'
          ) : (
            <>
              Last seen <Time at={session.lastSeenAt} />
            </>
          )}
          {session.ipAddress && (
            <>
              {' '}
              from <span className="mono">{session.ipAddress}</span>
            </>
          )}
        </div>
        <div className="small dim">
          Signed in <Time at={session.createdAt} /> {methodOf(session.method)}
        </div>
        <Problem error={end.error} what="The session was not signed out." />
      </div>
      {!session.isCurrent && (
        <Button
          size="xs"
          variant="default"
          loading={end.isPending}
          aria-label={`Sign out ${device}`}
          onClick={() => void end.run()}
        >
          Sign out
        </Button>
      )}
    </li>
  )
}
