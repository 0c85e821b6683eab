import { useRouter } from '@tanstack/react-router'
import { EmptyState } from '../components/empty-state.tsx'
import { TextLink } from '../components/layout/links.tsx'
import { Page } from '../components/layout/page.tsx'
import { Problem } from '../components/problem.tsx'

export function Missing() {
  return (
    <Page title="Page not found">
      <EmptyState
        art="signpost"
        title="There is no page at this address."
        sentence="Check the address, or choose a page from the menu."
        action={<TextLink to="/">Go to the overview</TextLink>}
      />
    </Page>
  )
}

export function Broken({ error }: { error: unknown }) {
  const router = useRouter()
  return (
    <Page title="Something went wrong">
      <Problem error={error} what="This page could not be displayed." onRetry={() => void router.invalidate()} />
    </Page>
  )
}
