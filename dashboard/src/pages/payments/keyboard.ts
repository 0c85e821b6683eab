import { useEffect } from 'react'
import { isTypingIn, shortcuts } from '../../components/palette/keys.ts'

export const ROW_LINK = 'row-link'

let lastOpened: string | null = null
/** After a visit to a payment, j and k go on from its row. */
export const noteOpened = (paymentId: string): void => {
  lastOpened = paymentId
}

const STEPS: Record<string, number> = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 }

/** j and k, and on a row also the arrows, go from row to row; Enter opens it, because it is a link. */
export function useListKeys(): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return
      const at = document.activeElement
      if (isTypingIn(at) || document.querySelector('[role=dialog]')) return
      const step = STEPS[event.key]
      const isOnRow = at?.classList.contains(ROW_LINK) ?? false
      // Elsewhere, the arrows scroll the page.
      const isArrow = event.key.startsWith('Arrow')
      if (step === undefined || (isArrow ? !isOnRow : shortcuts.current() === 'off')) return
      const links = [...document.querySelectorAll<HTMLAnchorElement>(`a.${ROW_LINK}`)]
      const from = isOnRow ? links.indexOf(at as HTMLAnchorElement) : links.findIndex(({ dataset }) => dataset.id === lastOpened)
      const next = links[from === -1 ? 0 : Math.min(Math.max(from + step, 0), links.length - 1)]
      if (!next) return
      event.preventDefault()
      next.focus()
      next.closest('tr')?.scrollIntoView({ block: 'nearest' })
    }
    document.addEventListener('keydown', onKey)
    return () => document.removeEventListener('keydown', onKey)
  }, [])
}
