import { useComputedColorScheme } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { useQuery, useSuspenseQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import { subjectsQuery } from '../../api/activity.ts'
import { paymentFinderQuery } from '../../api/palette.ts'
import { keysQuery, meQuery, nodesQuery, webhooksQuery } from '../../api/queries.ts'
import { useUnit } from '../../unit.ts'
import { useNow } from '../time.tsx'
import { type Group, groupsFor } from './commands.ts'
import { noteFor, paymentSearchIn } from './matching.ts'

const PAUSE_MS = 250

/** What matches, and a sentence about what is still missing or was not found. */
export function useFound(query: string): { groups: Group[]; note: string } {
  const { data: me } = useSuspenseQuery(meQuery)
  const unit = useUnit()
  // Updated often enough that a payment created meanwhile is shown as "just now", and never as "in 40 seconds".
  const now = useNow(10)
  const isDark = useComputedColorScheme('light', { getInitialValueInEffect: false }) === 'dark'
  const nodes = useQuery(nodesQuery)
  const keys = useQuery(keysQuery)
  const webhooks = useQuery(webhooksQuery)
  const subjects = useQuery(subjectsQuery)
  const wanted = paymentSearchIn(query)
  const [asked] = useDebouncedValue(wanted, PAUSE_MS)
  const found = useQuery(paymentFinderQuery(asked))
  // Ignores the response to an earlier text.
  const payments = asked === wanted ? found.data : undefined
  const groups = useMemo(
    () =>
      groupsFor(query, {
        nodes: nodes.data,
        keys: keys.data,
        webhooks: webhooks.data,
        subjects: subjects.data,
        payments,
        isSandbox: me.isSandbox,
        isDark,
        unit,
        now,
      }),
    [query, nodes.data, keys.data, webhooks.data, subjects.data, payments, me.isSandbox, isDark, unit, now],
  )
  const lists = { nodes, 'API keys': keys, webhooks, 'revoked keys and deleted nodes': subjects }
  const failed = Object.entries(lists).flatMap(([name, list]) => (list.isError && !list.data ? [name] : []))
  if (wanted !== undefined && asked === wanted && found.isError) failed.push('payments')
  const isSearching = Object.values(lists).some(({ isPending }) => isPending) || (wanted !== undefined && !payments)
  const count = groups.flatMap(({ name, commands }) => (name === 'Documentation' ? [] : commands)).length
  const offersDocs = groups.some(({ name }) => name === 'Documentation')
  return { groups, note: noteFor(query, { count, offersDocs, isSearching, failed }) }
}
