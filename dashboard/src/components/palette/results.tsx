import {
  IconArrowRight,
  IconBolt,
  IconBook,
  IconCommand,
  IconKey,
  IconTopologyStar3,
  IconWebhook,
  type TablerIcon,
} from '@tabler/icons-react'
import type { Command, Group, Kind } from './commands.ts'

const ICONS: Record<Kind, TablerIcon> = {
  page: IconArrowRight,
  action: IconCommand,
  node: IconTopologyStar3,
  payment: IconBolt,
  key: IconKey,
  webhook: IconWebhook,
  docs: IconBook,
}

type Props = {
  id: string
  groups: Group[]
  chosen: Command | undefined
  optionId: (command: Command) => string
  onPoint: (id: string) => void
  onChoose: (command: Command) => void
}

/** The field keeps the focus, so the options take none: `aria-activedescendant` says which one is chosen. */
export function Results({ id, groups, chosen, optionId, onPoint, onChoose }: Props) {
  return (
    <div id={id} role="listbox" aria-label="Results" className="palette-results" tabIndex={-1}>
      {groups.map(({ name, commands }) => (
        // biome-ignore lint/a11y/useSemanticElements: a fieldset cannot be part of a listbox
        <div key={name} role="group" aria-label={name}>
          <div className="palette-group" aria-hidden="true">
            {name}
          </div>
          {commands.map((command) => {
            const Icon = ICONS[command.kind]
            return (
              // biome-ignore lint/a11y/useKeyWithClickEvents: the field handles the keys
              <div
                key={command.id}
                id={optionId(command)}
                role="option"
                tabIndex={-1}
                aria-selected={command === chosen}
                className="palette-option"
                onMouseDown={(event) => event.preventDefault()}
                onMouseMove={() => onPoint(command.id)}
                onClick={() => onChoose(command)}
              >
                <Icon size={18} aria-hidden />
                <span className="palette-text" dir="auto">
                  <Label command={command} />
                  {command.hint && <span className="palette-hint">{command.hint}</span>}
                </span>
                {command.keys && (
                  <span className="palette-keys" aria-hidden="true">
                    {command.keys.split(' ').map((key) => (
                      <kbd key={key}>{key}</kbd>
                    ))}
                  </span>
                )}
              </div>
            )
          })}
        </div>
      ))}
    </div>
  )
}

function Label({ command: { label, named } }: { command: Command }) {
  if (named === undefined) return label
  const start = label.indexOf(named)
  return (
    <>
      {label.slice(0, start)}
      <bdi>{named}</bdi>
      {label.slice(start + named.length)}
    </>
  )
}
