import { CloseButton, Modal, TextInput, useComputedColorScheme } from '@mantine/core'
import { IconSearch } from '@tabler/icons-react'
import { useSuspenseQuery } from '@tanstack/react-query'
import { type KeyboardEvent, useEffect, useId, useState } from 'react'
import { signOut } from '../../api/auth.ts'
import { meQuery } from '../../api/queries.ts'
import { leaveAfter } from '../../api/session.ts'
import { history } from '../../history.ts'
import { currentUnit, setUnit } from '../../unit.ts'
import { copyText } from '../copy-button.tsx'
import { announce } from '../layout/announcer.tsx'
import { useColorScheme } from '../layout/theme-toggle.tsx'
import { Problem } from '../problem.tsx'
import { useAction } from '../use-action.ts'
import type { Command, Doing } from './commands.ts'
import { isApple } from './keys.ts'
import { requestOperation } from './node-request.ts'
import { Results } from './results.tsx'
import { useFound } from './use-found.ts'

type Props = { isOpen: boolean; onClose: () => void; onShortcuts: () => void }

export function Palette({ isOpen, onClose, onShortcuts }: Props) {
  return (
    <Modal.Root
      opened={isOpen}
      onClose={onClose}
      lockScroll={false}
      returnFocus={false}
      size={640}
      yOffset="10vh"
      transitionProps={{ duration: 120 }}
      className="palette"
    >
      <Modal.Overlay />
      <Modal.Content aria-label="Search or jump to">
        <Body onClose={onClose} onShortcuts={onShortcuts} />
      </Modal.Content>
    </Modal.Root>
  )
}

/** Mounted while the palette is open, so every visit starts without a query. */
function Body({ onClose, onShortcuts }: Omit<Props, 'isOpen'>) {
  const [query, setQuery] = useState('')
  const [chosenId, setChosenId] = useState<string | null>(null)
  const { groups, note } = useFound(query)
  const listId = useId()
  const act = useAct(onClose, onShortcuts)
  const commands = groups.flatMap((group) => group.commands)
  // By id, not by position: results that arrive later must not change what Enter does.
  const at = Math.max(
    0,
    commands.findIndex(({ id }) => id === chosenId),
  )
  const chosen = commands[at]
  const optionId = (command: Command): string => `${listId}-${command.id.replace(/\W/g, '-')}`
  const chosenOption = chosen && optionId(chosen)
  useEffect(() => {
    if (chosenOption) document.getElementById(chosenOption)?.scrollIntoView({ block: 'nearest' })
  }, [chosenOption])

  const onKeyDown = (event: KeyboardEvent) => {
    if (event.nativeEvent.isComposing) return
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (step !== undefined) setChosenId(commands[(at + step + commands.length) % commands.length]?.id ?? null)
    else if (event.key === 'Enter' && chosen) void act.run(chosen)
    else if (event.key.toLowerCase() === 'k' && (isApple() ? event.metaKey : event.ctrlKey)) onClose()
    else return
    event.preventDefault()
  }
  return (
    <>
      <div className="palette-head">
        <TextInput
          data-autofocus
          className="palette-field"
          variant="unstyled"
          size="md"
          leftSection={<IconSearch size={18} aria-hidden />}
          placeholder="Page, node, payment or action"
          aria-label="Search or jump to"
          role="combobox"
          aria-expanded
          aria-controls={listId}
          aria-autocomplete="list"
          aria-activedescendant={chosenOption}
          autoComplete="off"
          spellCheck={false}
          enterKeyHint="go"
          dir="auto"
          value={query}
          onChange={(event) => {
            setQuery(event.currentTarget.value)
            setChosenId(null)
          }}
          onKeyDown={onKeyDown}
        />
        <CloseButton aria-label="Close" onClick={onClose} />
      </div>
      <Problem error={act.error} what="Signing out failed." again="Check your connection and try again." />
      <Results
        id={listId}
        groups={groups}
        chosen={chosen}
        optionId={optionId}
        onPoint={setChosenId}
        onChoose={(one) => void act.run(one)}
      />
      <p role="status" className="palette-note" dir="auto">
        {note}
      </p>
    </>
  )
}

function useAct(onClose: () => void, onShortcuts: () => void) {
  const { data: me } = useSuspenseQuery(meQuery)
  const { setColorScheme } = useColorScheme()
  const isDark = useComputedColorScheme('light', { getInitialValueInEffect: false }) === 'dark'
  const doing: Record<Doing, () => unknown> = {
    'copy-account-id': async () => {
      const isCopied = await copyText(me.account?.id ?? '')
      announce(isCopied ? 'Account id copied' : 'The browser blocked copying. Settings shows the account id.')
    },
    'switch-theme': () => setColorScheme(isDark ? 'light' : 'dark'),
    'switch-unit': () => setUnit(currentUnit() === 'sat' ? 'btc' : 'sat'),
    'show-shortcuts': onShortcuts,
    'sign-out': () => leaveAfter(signOut),
  }
  return useAction(async ({ act }: Command) => {
    if (act.kind === 'do') await doing[act.what]()
    if (act.kind !== 'do' || act.what !== 'show-shortcuts') onClose()
    if (act.kind === 'go') history.push(`/dashboard${act.path}`)
    if (act.kind === 'open') window.location.assign(act.href)
    if (act.kind === 'operate') requestOperation(act.nodeId, act.verb)
  })
}
