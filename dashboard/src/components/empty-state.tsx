import type { ReactNode } from 'react'
import { type Drawing, Illustration } from './art/illustration.tsx'
import { Snippet } from './snippet.tsx'

type Props = { art: Drawing; title?: string | undefined; sentence?: ReactNode; action?: ReactNode; curl?: string }

/** Shown instead of an empty list: what will be here, and what to do next, with a button and perhaps with curl. */
export function EmptyState({ art, title, sentence, action, curl }: Props) {
  return (
    <div className="card empty">
      <Illustration of={art} />
      {title && <p className="empty-title">{title}</p>}
      {sentence && <p className="dim empty-text">{sentence}</p>}
      {action}
      {curl && <Snippet code={curl} label="The same with curl" language="curl" />}
    </div>
  )
}
