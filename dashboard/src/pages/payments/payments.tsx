import { Button, Group } from '@mantine/core'
import { useQuery, useSuspenseQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { isFiltered, paymentsQuery } from '../../api/payments.ts'
import { meQuery, nodesQuery } from '../../api/queries.ts'
import { EmptyState } from '../../components/empty-state.tsx'
import { ButtonLink } from '../../components/layout/links.tsx'
import { TabbedPage } from '../../components/layout/tabbed-page.tsx'
import { Loading } from '../../components/loading.tsx'
import { Problem } from '../../components/problem.tsx'
import { chargeCurl } from '../../text/code/snippets.ts'
import { Filters } from './filters.tsx'
import { useListKeys } from './keyboard.ts'
import { PaymentTable } from './table.tsx'
import { Totals } from './totals.tsx'

export function PaymentsPage() {
  const { data: me } = useSuspenseQuery(meQuery)
  const place = useSearch({ from: '/app/gateway' })
  const navigate = useNavigate({ from: '/gateway' })
  const { data, error, isPending, isPlaceholderData, dataUpdatedAt, refetch } = useQuery(paymentsQuery(place))
  const { data: nodes } = useQuery(nodesQuery)
  useListKeys()
  const isEmpty = data?.payments.length === 0 && !isPlaceholderData
  const isNarrowed = isFiltered(place)
  const isLater = place.cursor !== undefined || place.after !== undefined
  const isFirstUse = isEmpty && !isNarrowed && !isLater

  return (
    <TabbedPage section="Gateway" at="/gateway">
      {isFirstUse ? (
        <EmptyState
          art="payments"
          title="No payments yet."
          sentence="A payment starts with a challenge, which your server sends with status 402."
          action={
            me.isSandbox ? (
              <ButtonLink to="/gateway/try-it">Try it</ButtonLink>
            ) : (
              <ButtonLink to="/developers">Create an API key</ButtonLink>
            )
          }
          curl={chargeCurl(me.publicUrl, nodes?.[0]?.id)}
        />
      ) : (
        <>
          <Filters />
          <Totals place={place} listUpdatedAt={dataUpdatedAt} />
        </>
      )}
      {!data && <Problem error={error} what="The payments could not be loaded." onRetry={() => void refetch()} />}
      {isPending && <Loading height={480} shape="list" />}
      {isEmpty && !isFirstUse && (
        <EmptyState
          art="search"
          title={isNarrowed ? 'No payments match these filters.' : 'There are no payments on this page.'}
          action={
            <Button onClick={() => void navigate({ search: {} })}>{isNarrowed ? 'Clear filters' : 'Show the newest'}</Button>
          }
        />
      )}
      {data && data.payments.length > 0 && (
        <>
          <PaymentTable rows={data.payments} isOld={isPlaceholderData} place={place} />
          <Group justify="flex-end" mt="md">
            <Group gap="xs">
              {data.previousCursor !== null && (
                <ButtonLink variant="default" to="/gateway" search={{ ...place, cursor: undefined, after: data.previousCursor }}>
                  Newer
                </ButtonLink>
              )}
              {data.nextCursor !== null && (
                <ButtonLink variant="default" to="/gateway" search={{ ...place, after: undefined, cursor: data.nextCursor }}>
                  Older
                </ButtonLink>
              )}
            </Group>
          </Group>
        </>
      )}
    </TabbedPage>
  )
}
