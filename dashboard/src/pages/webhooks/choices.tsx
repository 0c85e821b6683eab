import { Checkbox, Stack, VisuallyHidden } from '@mantine/core'
import type { DashboardNode, EventFilter } from '../../api/types.ts'
import { EVENT_GROUPS, whenOf, withFilter } from '../../text/event-types.ts'

type EventProps = { filters: EventFilter[]; onChange: (filters: EventFilter[]) => void }

/** Selects a whole group of event types, or some of the types in it. */
export function EventChoices({ filters, onChange }: EventProps) {
  return EVENT_GROUPS.map(({ filter: group, name, types }) => {
    const hasGroup = filters.includes(group)
    return (
      <fieldset key={group} className="bare nested">
        <legend className="legend">{name}</legend>
        <div className="choices">
          <Checkbox
            label={group}
            description="All of these, and those that are added later."
            checked={hasGroup}
            onChange={(event) => onChange(withFilter(filters, group, event.currentTarget.checked))}
          />
          {types.map((type) => (
            <Checkbox
              key={type}
              label={type}
              description={whenOf(type)}
              disabled={hasGroup}
              checked={hasGroup || filters.includes(type)}
              onChange={(event) => onChange(withFilter(filters, type, event.currentTarget.checked))}
            />
          ))}
        </div>
      </fieldset>
    )
  })
}

type NodeProps = { nodes: DashboardNode[]; nodeIds: string[]; onChange: (nodeIds: string[]) => void }

export function NodeChoices({ nodes, nodeIds, onChange }: NodeProps) {
  const known = nodes.map(({ id, name }) => ({ id, name }))
  // A deleted node can still be selected. The service refuses a new list that contains it, so it must be possible to deselect it.
  const deleted = nodeIds
    .filter((nodeId) => !nodes.some(({ id }) => id === nodeId))
    .map((id) => ({ id, name: `${id} (deleted)` }))
  return (
    <fieldset className="bare nested">
      <VisuallyHidden component="legend">Selected nodes</VisuallyHidden>
      <Stack gap="xs">
        {[...known, ...deleted].map(({ id, name }) => (
          <Checkbox
            key={id}
            label={<bdi>{name}</bdi>}
            checked={nodeIds.includes(id)}
            onChange={(event) => {
              const others = nodeIds.filter((one) => one !== id)
              onChange(event.currentTarget.checked ? [...others, id] : others)
            }}
          />
        ))}
      </Stack>
    </fieldset>
  )
}
