import { Button } from '@mantine/core'
import { useRouter } from '@tanstack/react-router'
import { TextLink } from '../components/links.tsx'
import { Page } from '../components/page.tsx'
import { Problem } from '../components/problem.tsx'

export function Missing() {
  return (
    <Page title="Page not found">
      <p>There is no page at this address.</p>
      <TextLink to="/">Go to the overview</TextLink>
    </Page>
  )
}

export function Broken({ error }: { error: unknown }) {
  const router = useRouter()
  // After an update of the service the files of the old app are gone; the page that is open asks for them all the same.
  const isOldApp = error instanceof TypeError && /import|module/i.test(error.message)
  return (
    <Page title="Something went wrong">
      {isOldApp ? (
        <>
          <p>The dashboard was updated while this page was open.</p>
          <Button onClick={() => window.location.reload()}>Reload</Button>
        </>
      ) : (
        <Problem error={error} what="This page cannot be shown." onRetry={() => void router.invalidate()} />
      )}
    </Page>
  )
}
