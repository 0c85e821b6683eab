import './styles/mantine.css'
import './styles/theme.css'
import './styles/app.css'
import './styles/blocks.css'
import './styles/pages.css'
import './styles/settings.css'
import './styles/payments.css'
import './styles/overview.css'
import './styles/nodes.css'
import './styles/illustrations.css'
import './styles/gate.css'
import './styles/palette-button.css'
import './styles/print.css'
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

// Fetches the page's code in parallel with /me, which decides whether the page is shown.
const matches: { routeId: keyof typeof router.routesById }[] = router.matchRoutes(router.latestLocation)
for (const { routeId } of matches) void router.loadRouteChunk(router.routesById[routeId])

const root = document.getElementById('root')
if (!root) throw new Error('The page has no root.')

// index.html shows a loading state until the first response. If the request fails, the router repeats it and shows the error.
await queryClient.prefetchQuery(meQuery)

// No <style> tags from Mantine (see theme.ts), so the Content-Security-Policy needs no exception for styles.
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
