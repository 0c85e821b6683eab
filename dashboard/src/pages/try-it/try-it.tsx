import { useQuery, useSuspenseQuery } from '@tanstack/react-query'
import { meQuery, nodesQuery } from '../../api/queries.ts'
import { GatewayTabs } from '../../components/layout/gateway-tabs.tsx'
import { ButtonLink, TextLink } from '../../components/layout/links.tsx'
import { Loading } from '../../components/loading.tsx'
import { Problem } from '../../components/problem.tsx'
import { TryItSteps } from './steps.tsx'

export function TryItPage() {
  const { data: me } = useSuspenseQuery(meQuery)
  const nodes = useQuery(nodesQuery)
  const ready = nodes.data?.filter((node) => node.status === 'ready' && !node.isSilent) ?? []
  return (
    <GatewayTabs place="try-it">
      {!me.isSandbox ? (
        <p className="note">
          Here one would pay a challenge as a customer, step by step. That needs a customer with play money, whom only a sandbox
          has; this service works with real money. <TextLink to="/developers">Developers</TextLink> shows the same steps as code.
        </p>
      ) : (
        <>
          {!nodes.data && <Problem error={nodes.error} what="Your nodes cannot be read." onRetry={() => void nodes.refetch()} />}
          {nodes.isPending && <Loading height={320} />}
          {nodes.data && ready.length === 0 && (
            <div className="card empty">
              <p>
                {nodes.data.some((node) => node.status === 'provisioning')
                  ? 'Your node is being set up. As soon as it is ready you can go on here.'
                  : nodes.data.some((node) => node.isSilent)
                    ? 'A payment goes to a node of yours, and it does not answer at the moment. It is started again by itself.'
                    : 'A payment goes to a node of yours, and none is running.'}
              </p>
              {nodes.data.length === 0 ? (
                <ButtonLink to="/nodes" search={{ create: true }}>
                  Create a node
                </ButtonLink>
              ) : (
                <ButtonLink to="/nodes" variant="default">
                  Go to the nodes
                </ButtonLink>
              )}
            </div>
          )}
          {ready.length > 0 && <TryItSteps me={me} nodes={ready} />}
        </>
      )}
    </GatewayTabs>
  )
}
