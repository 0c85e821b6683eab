import { NativeSelect } from '@mantine/core'
import { useQuery, useSuspenseQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { ACTIVITY_KINDS, type ActivityFilter, type ActivityKind, isActivityFiltered, subjectsQuery } from '../../api/activity.ts'
import { meQuery } from '../../api/queries.ts'
import { ANY, type Choice, choicesOf, DateFields, withChosen } from '../../components/filter-fields.tsx'
import { TextLink } from '../../components/layout/links.tsx'

const KINDS: Record<ActivityKind, string> = {
  nodes: 'Nodes',
  payments: 'Payments',
  keys: 'API keys',
  credit: 'Credit',
  people: 'People and sign-in',
  webhooks: 'Webhooks',
}

export function Filters() {
  const filter = useSearch({ from: '/app/activity' })
  const navigate = useNavigate({ from: '/activity' })
  const { data: me } = useSuspenseQuery(meQuery)
  const { data: subjects = { nodes: [], keys: [], people: [] } } = useQuery(subjectsQuery)
  const set = (change: ActivityFilter) => void navigate({ search: (before) => ({ ...before, ...change }), replace: true })
  const select = (label: string, name: 'nodeId' | 'keyId' | 'actor', choices: Choice[]) => (
    <NativeSelect
      label={label}
      value={filter[name] ?? ''}
      data={withChosen([ANY, ...choices], filter[name])}
      onChange={({ currentTarget: { value } }) => set({ [name]: value || undefined })}
    />
  )
  const keys = choicesOf(subjects.keys, 'revoked')
  const actors = [
    ...subjects.people.map(({ id, name }) => ({ value: id, label: id === me.user?.id ? `You (${name})` : name })),
    { value: 'operator', label: 'The operator' },
    { value: 'service', label: 'The service' },
    ...keys.map(({ value, label }) => ({ value, label: `API key ${label}` })),
  ]
  return (
    <search className="filters" aria-label="Filter activity">
      <NativeSelect
        label="Kind"
        value={filter.kind ?? ''}
        data={[ANY, ...ACTIVITY_KINDS.map((kind) => ({ value: kind, label: KINDS[kind] }))]}
        onChange={({ currentTarget: { value } }) => set({ kind: ACTIVITY_KINDS.find((kind) => kind === value) })}
      />
      {select('API key', 'keyId', keys)}
      {select('Node', 'nodeId', choicesOf(subjects.nodes, 'deleted'))}
      {select('Done by', 'actor', actors)}
      <DateFields period={filter} onChange={set} />
      {isActivityFiltered(filter) && (
        <TextLink to="/activity" className="filters-clear">
          Show all
        </TextLink>
      )}
    </search>
  )
}
