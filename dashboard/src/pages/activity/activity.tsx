import '../../styles/activity.css'
import '../../styles/filters.css'
import { useInfiniteQuery, useSuspenseQuery } from '@tanstack/react-query'
import { useSearch } from '@tanstack/react-router'
import { type ActivityEntry, activityPagesQuery, isActivityFiltered } from '../../api/activity.ts'
import { meQuery } from '../../api/queries.ts'
import { EmptyState } from '../../components/empty-state.tsx'
import { ButtonLink, TextLink } from '../../components/layout/links.tsx'
import { Page } from '../../components/layout/page.tsx'
import { LoadMore } from '../../components/load-more.tsx'
import { Loading } from '../../components/loading.tsx'
import { Problem } from '../../components/problem.tsx'
import { useNow } from '../../components/time.tsx'
import { createNodeCurl } from '../../text/code/snippets.ts'
import { dayName, dayStart } from '../../text/days.ts'
import { Filters } from './filters.tsx'
import { groupsOf } from './groups.ts'
import { Row } from './row.tsx'

export function ActivityPage() {
  const { data: me } = useSuspenseQuery(meQuery)
  const filter = useSearch({ from: '/app/activity' })
  const activity = useInfiniteQuery(activityPagesQuery(filter))
  const rows = activity.data?.pages.flatMap((page) => page.activity)
  const isFiltered = isActivityFiltered(filter)
  // Until the rows for the new filter arrive, those for the previous filter are shown.
  const isOld = activity.isPlaceholderData
  return (
    <Page title="Activity">
      {(isFiltered || isOld || rows?.length !== 0) && <Filters />}
      {!activity.data && (
        <Problem error={activity.error} what="The activity log could not be loaded." onRetry={() => void activity.refetch()} />
      )}
      {activity.isPending && <Loading height={480} shape="list" />}
      {rows?.length === 0 &&
        !isOld &&
        (isFiltered ? (
          <EmptyState
            art="search"
            title={activity.hasNextPage ? 'Nothing found among the newest entries.' : 'Nothing in the log matches these filters.'}
            action={<TextLink to="/activity">Show all activity</TextLink>}
          />
        ) : (
          <EmptyState
            art="activity"
            title="Nothing has happened yet."
            sentence="What you and your programs do is listed here. Start with a node."
            action={
              <ButtonLink to="/nodes" search={{ create: true }}>
                Create a node
              </ButtonLink>
            }
            curl={createNodeCurl(me.publicUrl)}
          />
        ))}
      {rows && rows.length > 0 && <Days rows={rows} isOld={isOld} userId={me.user?.id ?? null} />}
      {!isOld && <LoadMore query={activity} />}
    </Page>
  )
}

/** One list per day in the viewer's time zone. */
function Days({ rows, isOld, userId }: { rows: ActivityEntry[]; isOld: boolean; userId: string | null }) {
  const now = useNow(60)
  const days = groupsOf(rows, ({ at }) => dayStart(at))
  return (
    <section className={isOld ? 'days old' : 'days'} aria-label="Activity" aria-busy={isOld}>
      {days.map(([day, ofDay]) => (
        <div key={day}>
          <h2 className="day" id={`day-${day}`}>
            {dayName(day, now)}
          </h2>
          <ul className="card list rows" aria-labelledby={`day-${day}`}>
            {ofDay.map((row) => (
              <Row key={keyOf(row)} row={row} userId={userId} />
            ))}
          </ul>
        </div>
      ))}
    </section>
  )
}

/** A fold has the id of its newest entry, which changes. With this key, it stays open while payments are added to it. */
const keyOf = ({ id, nodeId, fold }: ActivityEntry): string => (fold ? `${nodeId} ${fold.from}` : String(id))
