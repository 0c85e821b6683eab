import { Button, Group } from '@mantine/core'
import { Problem } from './problem.tsx'

type Props = {
  query: {
    hasNextPage: boolean
    isFetchingNextPage: boolean
    isFetchNextPageError: boolean
    error: unknown
    fetchNextPage: () => unknown
  }
}

export function LoadMore({ query }: Props) {
  if (query.isFetchNextPageError) {
    return <Problem error={query.error} what="Loading more failed." onRetry={() => void query.fetchNextPage()} />
  }
  if (!query.hasNextPage) return null
  return (
    <Group justify="center" mt="md">
      <Button variant="default" loading={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
        Load more
      </Button>
    </Group>
  )
}
