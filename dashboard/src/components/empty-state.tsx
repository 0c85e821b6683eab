import type { ReactNode } from 'react'
import { Snippet } from './snippet.tsx'

type Props = { sentence: string; action: ReactNode; curl: string }

/** Instead of an empty table: what would be here, how to get it with the mouse, and how with curl. */
export function EmptyState({ sentence, action, curl }: Props) {
  return (
    <div className="card empty">
      <p>{sentence}</p>
      {action}
      <Snippet code={curl} label="The same with curl" />
    </div>
  )
}
