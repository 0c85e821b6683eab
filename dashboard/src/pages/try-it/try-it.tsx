import { useQuery, useSuspenseQuery } from '@tanstack/react-query'
import { meQuery, nodesQuery } from '../../api/queries.ts'
import { ButtonLink, TextLink } from '../../components/layout/links.tsx'
import { TabbedPage } from '../../components/layout/tabbed-page.tsx'
import { Loading } from '../../components/loading.tsx'
import { Problem } from '../../components/problem.tsx'
import { TryItSteps } from './steps.tsx'

export function TryItPage() {
  const { data: me } = useSuspenseQuery(meQuery)
  const nodes = useQuery(nodesQuery)
  const ready = nodes.data?.filter((node) => node.status === 'ready' && !node.isSilent) ?? []
  return (
    <TabbedPage section="Gateway" at="/gateway/try-it">
      {!me.isSandbox ? (
        <p className="note">
          On a sandbox, you can try out a payment here step by step, with a test customer and play money. This service is not a
          sandbox. See <TextLink to="/developers">Developers</TextLink> for the same steps as code.
        </p>
      ) : (
        <>
          {!nodes.data && (
            <Problem error={nodes.error} what="Your nodes could not be loaded." onRetry={() => void nodes.refetch()} />
          )}
          {nodes.isPending && <Loading height={320} />}
          {nodes.data && ready.length === 0 && (
            <div className="card empty">
              <p>
                {nodes.data.some((node) => node.status === 'provisioning')
                  ? 'Your node is being set up. You can continue here when it is ready.'
                  : nodes.data.some((node) => node.isSilent)
                    ? 'Payments go to one of your nodes, and it is not responding. The service restarts it automatically.'
                    : 'Payments go to one of your nodes, and none is running.'}
              </p>
              {nodes.data.length === 0 ? (
                <ButtonLink to="/nodes" search={{ create: true }}>
                  Create a node
                </ButtonLink>
              ) : (
                <ButtonLink to="/nodes" variant="default">
                  Go to nodes
                </ButtonLink>
              )}
            </div>
          )}
          {ready.length > 0 && <TryItSteps me={me} nodes={ready} />}
        </>
      )}
    </TabbedPage>
  )
}
