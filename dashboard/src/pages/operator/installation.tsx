import { IconArchive, IconCircleCheck } from '@tabler/icons-react'
import { useQuery } from '@tanstack/react-query'
import { type Host, hostsQuery, type VersionCatalog, versionsQuery } from '../../api/operator.ts'
import { Page } from '../../components/layout/page.tsx'
import { Loading } from '../../components/loading.tsx'
import { Problem } from '../../components/problem.tsx'
import { Status } from '../../components/status.tsx'
import { counted, grouped } from '../../text/format.ts'

const nodesIn = (count: number): string => counted(count, 'node', 'nodes')

export function InstallationPage() {
  const hosts = useQuery(hostsQuery)
  const versions = useQuery(versionsQuery)
  return (
    <Page title="Hosts and versions">
      <div className="stack">
        <section aria-labelledby="hosts">
          <h2 id="hosts" className="section-title">
            Hosts
          </h2>
          {!hosts.data && (
            <Problem error={hosts.error} what="The hosts could not be loaded." onRetry={() => void hosts.refetch()} />
          )}
          {hosts.isPending && <Loading height={90} />}
          {hosts.data && (
            <ul className="card list rows" aria-label="Hosts">
              {hosts.data.map((host) => (
                <HostRow key={host.id} host={host} />
              ))}
            </ul>
          )}
        </section>
        <section aria-labelledby="versions">
          <h2 id="versions" className="section-title">
            Versions of the node software
          </h2>
          {!versions.data && (
            <Problem error={versions.error} what="The versions could not be loaded." onRetry={() => void versions.refetch()} />
          )}
          {versions.isPending && <Loading height={90} />}
          {versions.data && <Versions catalog={versions.data} />}
        </section>
      </div>
    </Page>
  )
}

function HostRow({ host }: { host: Host }) {
  const { id, isHere, nodes, nodesReady, nodesFailed, nodesDeleted, slots, slotsUsed } = host
  return (
    <li className="row">
      <span className="row-main">
        <strong className="mono">{id}</strong>
        {isHere && <span className="small dim"> (this one)</span>}
        <br />
        <span className="small dim">
          {nodesIn(nodes)}: {grouped(nodesReady)} ready, {grouped(nodesFailed)} failed
          {nodesDeleted > 0 && ` · ${grouped(nodesDeleted)} deleted, data still kept`}
        </span>
      </span>
      <span className="small">
        {slots === null
          ? `${grouped(slotsUsed)} slots used, limit not known here`
          : `${grouped(slotsUsed)} of ${grouped(slots)} slots used${slotsUsed < nodes ? ' (the treasury needs none)' : ''}`}
      </span>
    </li>
  )
}

function Versions({ catalog: { versions, nodesNeverRun, whyNoUpdates } }: { catalog: VersionCatalog }) {
  return (
    <>
      {whyNoUpdates && <p className="note small">{whyNoUpdates}</p>}
      <ul className="card list rows" aria-label="Versions">
        {[...versions].reverse().map(({ version, isInCatalog, isLatest, nodes }) => (
          <li key={version} className="row">
            <span className="row-main">
              <strong className="mono">{version}</strong>
              <br />
              <span className="small dim">
                {nodesIn(nodes)}
                {!isInCatalog && ' · not in the catalogue: no node can be created with it or updated to it'}
              </span>
            </span>
            {isLatest && <Status word="New nodes get this" tone="good" icon={IconCircleCheck} />}
            {!isInCatalog && <Status word="Not in the catalogue" tone="warn" icon={IconArchive} />}
          </li>
        ))}
      </ul>
      <p className="small dim">
        {nodesNeverRun > 0 &&
          `${nodesIn(nodesNeverRun)} without a version yet, because ${nodesNeverRun === 1 ? 'it has' : 'they have'} not run. `}
        The catalogue is set with NODE_VERSIONS. Owners update their nodes themselves.
      </p>
    </>
  )
}
