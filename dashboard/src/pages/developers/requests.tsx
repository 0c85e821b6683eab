import { Id } from '../../components/id.tsx'
import '../../styles/developers.css'
import { Group, Modal, NativeSelect, Table, TextInput } from '@mantine/core'
import { useInfiniteQuery, useQuery, useSuspenseQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { type FormEvent, useState } from 'react'
import { subjectsQuery } from '../../api/activity.ts'
import { type ApiRequest, REQUEST_ID, type RequestFilter, requestsQuery, STATUS_CLASSES } from '../../api/developers.ts'
import { meQuery } from '../../api/queries.ts'
import { CopyButton } from '../../components/copy-button.tsx'
import { EmptyState } from '../../components/empty-state.tsx'
import { ANY, choicesOf, withChosen } from '../../components/filter-fields.tsx'
import { ButtonLink, TextLink } from '../../components/layout/links.tsx'
import { TabbedPage } from '../../components/layout/tabbed-page.tsx'
import { LoadMore } from '../../components/load-more.tsx'
import { Loading } from '../../components/loading.tsx'
import { Problem } from '../../components/problem.tsx'
import { Time } from '../../components/time.tsx'
import { API_ROUTES } from '../../text/api-routes.ts'
import { whoAmICurl } from '../../text/code/snippets.ts'
import { exact, grouped } from '../../text/format.ts'

export function RequestsPage() {
  const { data: me } = useSuspenseQuery(meQuery)
  const filter = useSearch({ from: '/app/developers/requests' })
  const requests = useInfiniteQuery(requestsQuery(filter))
  const [shown, setShown] = useState<ApiRequest | null>(null)
  const rows = requests.data?.pages.flatMap((page) => page.requests)
  const isFiltered = Object.values(filter).some((value) => value !== undefined)
  return (
    <TabbedPage section="Developers" at="/developers/requests">
      {(isFiltered || rows?.length !== 0) && <Filters key={filter.requestId} />}
      {!requests.data && (
        <Problem error={requests.error} what="The requests could not be loaded." onRetry={() => void requests.refetch()} />
      )}
      {requests.isPending && <Loading height={480} shape="list" />}
      {rows?.length === 0 &&
        (isFiltered ? (
          <EmptyState
            art="search"
            title="No request of the last 7 days matches these filters."
            action={<TextLink to="/developers/requests">Show all requests</TextLink>}
          />
        ) : (
          <EmptyState
            art="requests"
            title="No requests in the last 7 days."
            sentence="What your programs send with an API key appears here within seconds."
            action={<ButtonLink to="/developers">Create an API key</ButtonLink>}
            curl={whoAmICurl(me.publicUrl)}
          />
        ))}
      {rows && rows.length > 0 && (
        <>
          <RequestTable rows={rows} onShow={setShown} />
          <LoadMore query={requests} />
        </>
      )}
      {/* Not shown until the list is loaded, which would push this text down. */}
      {!requests.isPending && (
        <p className="small dim">
          Requests are kept for 7 days, without bodies, queries and secrets. Requests without a valid key are not listed. If your
          programs send more than 10 requests a second for long, only some are listed; the counts on the page of API keys include
          all.
        </p>
      )}
      {shown && <Details request={shown} onClose={() => setShown(null)} />}
    </TabbedPage>
  )
}

const CLASS_NAMES = { 2: 'Success (2xx)', 4: 'Refused (4xx)', 5: 'Failed (5xx)' } as const

function Filters() {
  const filter = useSearch({ from: '/app/developers/requests' })
  const navigate = useNavigate({ from: '/developers/requests' })
  const { data: subjects = { keys: [] } } = useQuery(subjectsQuery)
  const [requestId, setRequestId] = useState(filter.requestId ?? '')
  const set = (some: RequestFilter) => void navigate({ search: (before) => ({ ...before, ...some }), replace: true })
  const isWrong = requestId.trim() !== '' && !REQUEST_ID.test(requestId.trim())
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (!isWrong) set({ requestId: requestId.trim() || undefined })
  }
  return (
    <Group mb="md" gap="md" align="flex-start">
      <NativeSelect
        label="Key"
        w={160}
        value={filter.keyId ?? ''}
        data={withChosen([ANY, ...choicesOf(subjects.keys, 'revoked')], filter.keyId)}
        onChange={(event) => set({ keyId: event.currentTarget.value || undefined })}
      />
      <NativeSelect
        label="Status"
        w={150}
        value={filter.status ?? ''}
        data={[ANY, ...STATUS_CLASSES.map((value) => ({ value, label: CLASS_NAMES[value] }))]}
        onChange={(event) => set({ status: STATUS_CLASSES.find((one) => one === event.currentTarget.value) })}
      />
      <NativeSelect
        label="Path"
        w={230}
        value={filter.route ?? ''}
        data={withChosen([ANY, ...API_ROUTES.map((value) => ({ value, label: value }))], filter.route)}
        onChange={(event) => set({ route: event.currentTarget.value || undefined })}
      />
      <form onSubmit={submit}>
        <TextInput
          label="Request id"
          placeholder="Paste it, press Enter"
          w={230}
          autoComplete="off"
          spellCheck={false}
          error={isWrong && 'A request id has 1 to 64 letters (A to Z), digits, dots, hyphens and underscores.'}
          value={requestId}
          onChange={(event) => {
            setRequestId(event.currentTarget.value)
            if (event.currentTarget.value === '') set({ requestId: undefined })
          }}
        />
      </form>
    </Group>
  )
}

function RequestTable({ rows, onShow }: { rows: ApiRequest[]; onShow: (request: ApiRequest) => void }) {
  return (
    <div className="card list">
      <Table verticalSpacing="sm" highlightOnHover aria-label="API requests">
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Status</Table.Th>
            <Table.Th>Request</Table.Th>
            <Table.Th className="from-700">Key</Table.Th>
            <Table.Th className="number from-540">Duration</Table.Th>
            <Table.Th className="from-460">Time</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {rows.map((request) => (
            <Table.Tr key={request.id} className="whole-row" onClick={() => onShow(request)}>
              <Table.Td>
                <Code status={request.status} />
              </Table.Td>
              <Table.Td className="breakable">
                <button type="button" className="row-button">
                  <span className="mono">
                    {request.method} {request.route}
                  </span>
                </button>
                {request.errorCode && <div className="small dim mono">{request.errorCode}</div>}
                <div className="small dim to-460">
                  <Time at={request.at} />
                </div>
              </Table.Td>
              <Table.Td className="name from-700" dir="auto" title={request.keyName ?? request.keyId}>
                {request.keyName ?? request.keyId}
              </Table.Td>
              <Table.Td className="number from-540">{milliseconds(request.durationMs)}</Table.Td>
              <Table.Td className="from-460">
                <Time at={request.at} />
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </div>
  )
}

const toneOf = (status: number): string => (status >= 500 ? 'bad' : status >= 400 ? 'warn' : 'good')

const Code = ({ status }: { status: number }) => <span className={`code code-${toneOf(status)}`}>{status}</span>

const milliseconds = (duration: number): string => (duration < 10 ? `${duration.toFixed(1)} ms` : `${grouped(duration)} ms`)

function Details({ request, onClose }: { request: ApiRequest; onClose: () => void }) {
  const { method, route, status, errorCode, errorMeaning, durationMs, keyId, keyName, at, requestId } = request
  return (
    <Modal opened onClose={onClose} title="Request" size="lg">
      <dl className="facts">
        <dt>Request</dt>
        <dd className="mono">
          {method} {route}
        </dd>
        <dt>Status</dt>
        <dd>
          <Code status={status} />
        </dd>
        {errorCode && (
          <>
            <dt>Error</dt>
            <dd>
              <span className="mono">{errorCode}</span>
              {errorMeaning && <div className="small">{errorMeaning}</div>}
            </dd>
          </>
        )}
        <dt>Request id</dt>
        <dd>
          <Id id={requestId} /> <CopyButton text={requestId} label="Copy request id" />
        </dd>
        <dt>Key</dt>
        <dd>
          {keyName !== null && <bdi>{keyName}</bdi>} <span className="mono dim">{keyId}</span>
        </dd>
        <dt>Duration</dt>
        <dd>{milliseconds(durationMs)}</dd>
        <dt>Time</dt>
        <dd>{exact(at)}</dd>
      </dl>
    </Modal>
  )
}
