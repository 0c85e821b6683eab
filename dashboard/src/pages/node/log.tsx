import { useQuery } from '@tanstack/react-query'
import { useEffect, useRef } from 'react'
import { nodeLogQuery } from '../../api/node-details.ts'
import type { DashboardNode } from '../../api/types.ts'
import { CopyButton } from '../../components/copy-button.tsx'
import { Loading } from '../../components/loading.tsx'
import { Problem } from '../../components/problem.tsx'

export function NodeLogPanel({ node }: { node: DashboardNode }) {
  const { data: log, error, refetch } = useQuery(nodeLogQuery(node.id))
  const box = useRef<HTMLElement>(null)
  const isAtEnd = useRef(true)
  // Follows new lines, unless the person has scrolled up to read.
  // biome-ignore lint/correctness/useExhaustiveDependencies: new lines move the end
  useEffect(() => {
    if (box.current && isAtEnd.current) box.current.scrollTop = box.current.scrollHeight
  }, [log])
  if (!log && error) return <Problem error={error} what="The log could not be loaded." onRetry={() => void refetch()} />
  if (!log) return <Loading height={420} />
  if (log.lines === null)
    return (
      <p className="note">
        The service cannot read the log of this node here, because the node runs on another machine or on Kubernetes. Its operator
        can read it there.
      </p>
    )
  const text = log.lines.join('\n')
  return (
    <section className="card" aria-labelledby="log">
      <div className="page-head">
        <h2 id="log" className="section-title">
          Log
        </h2>
        {log.lines.length > 0 && <CopyButton text={text} label="Copy log" withText />}
      </div>
      {log.lines.length === 0 ? (
        <p className="dim">The node has not written anything yet.</p>
      ) : (
        <section
          ref={box}
          className="node-log"
          // biome-ignore lint/a11y/noNoninteractiveTabindex: so that the keyboard can scroll it
          tabIndex={0}
          aria-label="Lines of the log"
          onScroll={({ currentTarget: at }) => {
            isAtEnd.current = at.scrollHeight - at.scrollTop - at.clientHeight < 40
          }}
        >
          <pre>{text}</pre>
        </section>
      )}
      <p className="small dim">
        {log.isComplete ? 'All that the node has written' : 'The last lines that the node has written'}, updated every 10 seconds.
        Times are in UTC. Long hexadecimal values, anything that looks like a password or recovery words, and paths and addresses
        of the machine are hidden.
      </p>
    </section>
  )
}
