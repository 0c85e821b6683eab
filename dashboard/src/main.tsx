import './styles/mantine.css'
import './styles/theme.css'
import './styles/app.css'
import './styles/blocks.css'
import './styles/pages.css'
import { MantineProvider } from '@mantine/core'
import { QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { createRoot } from 'react-dom/client'
import { whenSessionIsOver } from './api/client.ts'
import { meQuery, queryClient } from './api/queries.ts'
import { leaveSession } from './api/session.ts'
import { Announcer } from './components/layout/announcer.tsx'
import { router } from './router.tsx'
import { schemeManager, theme } from './theme.ts'

whenSessionIsOver(() => leaveSession())

// Together with who is signed in, which decides whether it is shown, and not after it.
const matches: { routeId: keyof typeof router.routesById }[] = router.matchRoutes(router.latestLocation)
for (const { routeId } of matches) void router.loadRouteChunk(router.routesById[routeId])

const root = document.getElementById('root')
if (!root) throw new Error('The page has no root.')

// Until the first answer the page itself shows that it is starting (index.html); what went wrong is told by the router, which asks again.
await queryClient.prefetchQuery(meQuery)

// Without its own <style> tags (see theme.ts), so that the Content-Security-Policy needs no exception for styles.
createRoot(root).render(
  <MantineProvider
    theme={theme}
    defaultColorScheme="auto"
    colorSchemeManager={schemeManager}
    withCssVariables={false}
    withGlobalClasses={false}
  >
    <QueryClientProvider client={queryClient}>
      <RouterProvider router={router} />
      <Announcer />
    </QueryClientProvider>
  </MantineProvider>,
)
