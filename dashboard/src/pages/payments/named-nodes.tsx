import { Button } from '@mantine/core'
import { distinctNames, nodesNamed } from '../../text/node-names.ts'

type Props = {
  nodes: { id: string; name: string }[]
  search: string | undefined
  chosenId: string | undefined
  onChoose: (nodeId: string) => void
}

/** The search does not look at the names of nodes, but people look for a node by its name. */
export function NamedNodes({ nodes, search = '', chosenId, onChoose }: Props) {
  const found = nodesNamed(nodes, search).filter(({ id }) => id !== chosenId)
  const names = distinctNames(nodes)
  if (found.length === 0) return null
  return (
    <ul className="named-nodes small">
      {found.map(({ id }) => (
        <li key={id}>
          <bdi>{names.get(id)}</bdi> is a node.{' '}
          <Button
            size="compact-sm"
            variant="subtle"
            aria-label={`Show its payments: ${names.get(id)}`}
            onClick={() => onChoose(id)}
          >
            Show its payments
          </Button>
        </li>
      ))}
    </ul>
  )
}
