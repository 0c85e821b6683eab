import { useEffect, useState } from 'react'

let show: (text: string) => void = () => {}

/** Seen for a few seconds and read out. Never for a secret: what is read out is heard by whoever is in the room. */
export const announce = (text: string): void => show(text)

const SHOWN_MS = 5000

/** One live region, there from the start: a screen reader does not hear a region that appears together with its text. */
export function Announcer() {
  const [text, setText] = useState('')
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
