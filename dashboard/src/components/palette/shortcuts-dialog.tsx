import { Modal } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import { Fragment } from 'react'
import { GO_KEYS, isApple, shortcuts } from './keys.ts'

type Shortcut = { keys: string[]; does: string }

const ANYWHERE: Shortcut[] = [
  { keys: ['/'], does: 'Search this page; without a search, jump to anything' },
  { keys: ['?'], does: 'Show this list' },
  ...Object.entries(GO_KEYS).map(([key, { name }]) => ({ keys: ['g', key], does: `Go to ${name}` })),
]
const IN_PAYMENTS: Shortcut[] = [
  { keys: ['j'], does: 'Next payment' },
  { keys: ['k'], does: 'Previous payment' },
]

export function ShortcutsDialog({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  const isOn = shortcuts.use() === 'on'
  return (
    <Modal opened={isOpen} onClose={onClose} returnFocus={false} title="Keyboard shortcuts">
      <List of={[{ keys: [isApple() ? '⌘K' : 'Ctrl K'], does: 'Search or jump to anything' }]} />
      <h3>Single keys{isOn ? '' : ' (turned off)'}</h3>
      <p className="small dim">
        They do nothing while you type in a field or a dialog is open. You can turn them {isOn ? 'off' : 'on'} in{' '}
        <Link to="/settings" onClick={onClose}>
          Settings
        </Link>
        .
      </p>
      <List of={ANYWHERE} />
      <h3>In the list of payments</h3>
      <List of={[...IN_PAYMENTS, { keys: ['Enter'], does: 'Open the payment' }]} />
    </Modal>
  )
}

const List = ({ of }: { of: Shortcut[] }) => (
  <dl className="shortcuts">
    {of.map(({ keys, does }) => (
      <Fragment key={does}>
        <dt>
          {keys.map((key, at) => (
            <Fragment key={key}>
              {at > 0 && <span className="dim"> then </span>}
              <kbd>{key}</kbd>
            </Fragment>
          ))}
        </dt>
        <dd>{does}</dd>
      </Fragment>
    ))}
  </dl>
)
