import { useEffect, useRef, useState } from 'react'
import { history } from '../../history.ts'
import { announce } from '../layout/announcer.tsx'
import { isApple, isTypingIn, keyReader, shortcuts } from './keys.ts'

type Which = 'palette' | 'shortcuts'
type Loaded = typeof import('./dialogs.tsx')

const load = (): Promise<Loaded> => import('./dialogs.tsx')
let open: (which: Which) => void = () => {}

export const openPalette = (): void => open('palette')
export const preloadPalette = (): void => void load().catch(() => {})

/** Handles the keyboard shortcuts of all pages. The dialogs are loaded when someone first opens one. */
export function PaletteHost() {
  const [dialogs, setDialogs] = useState<Loaded>()
  const [which, setWhich] = useState<Which | null>(null)
  const before = useRef<Element | null>(null)
  useEffect(() => {
    open = (wanted) => {
      before.current = document.activeElement
      void load().then(
        (loaded) => {
          setDialogs(loaded)
          setWhich(wanted)
        },
        () => announce('This could not be loaded. Check your connection, reload the page and try again.'),
      )
    }
    const read = keyReader()
    const onKey = (event: KeyboardEvent) => {
      if (event.defaultPrevented) return
      // A K may follow and open the palette. Load it now, so that it receives what the person types next.
      if (event.key === 'Control' || event.key === 'Meta') preloadPalette()
      const meaning = read(event, {
        isTyping: isTypingIn(document.activeElement),
        isInDialog: document.querySelector('[role=dialog]') !== null,
        isOn: shortcuts.current() === 'on',
        isApple: isApple(),
        nowMs: event.timeStamp,
      })
      if (!meaning) return
      event.preventDefault()
      if (meaning.act === 'go') history.push(`/dashboard${meaning.path}`)
      else if (meaning.act === 'help') open('shortcuts')
      else if (meaning.act === 'palette' || !focusSearch()) open('palette')
    }
    document.addEventListener('keydown', onKey)
    return () => {
      open = () => {}
      document.removeEventListener('keydown', onKey)
    }
  }, [])
  if (!dialogs) return null
  // Mantine cannot restore the focus if the list of shortcuts has replaced the palette, so it is restored here.
  const close = () => {
    setWhich(null)
    if (before.current instanceof HTMLElement) before.current.focus({ preventScroll: true })
  }
  return (
    <>
      <dialogs.Palette isOpen={which === 'palette'} onClose={close} onShortcuts={() => setWhich('shortcuts')} />
      <dialogs.ShortcutsDialog isOpen={which === 'shortcuts'} onClose={close} />
    </>
  )
}

/** Focuses the page's own search field. False if the page has none. */
function focusSearch(): boolean {
  const field = document.querySelector<HTMLInputElement>('main input[type=search]')
  field?.focus()
  return field !== null
}
