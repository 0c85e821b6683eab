import { type ReactNode, useEffect, useState } from 'react'

let show: (text: ReactNode) => void = () => {}

/**
 * Shows a message for a few seconds and lets screen readers announce it. Names that people chose are in a `<bdi>`. Never use it for
 * secrets: others may hear them.
 */
export const announce = (text: ReactNode): void => show(text)

const SHOWN_MS = 5000

/** One live region, present from the start: screen readers ignore a region that appears together with its text. */
export function Announcer() {
  const [text, setText] = useState<ReactNode>('')
  useEffect(() => {
    show = setText
    return () => {
      show = () => {}
    }
  }, [])
  useEffect(() => {
    if (text === '') return
    const timer = setTimeout(() => setText(''), SHOWN_MS)
    return () => clearTimeout(timer)
  }, [text])
  return (
    <div role="status" aria-live="polite" className="toast">
      {text}
    </div>
  )
}
