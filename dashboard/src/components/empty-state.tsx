import type { ReactNode } from 'react'
import { Snippet } from './snippet.tsx'

type Props = { sentence: string; action: ReactNode; curl: string }

/** Shown instead of an empty table: what will be here, and how to create it with a button or curl. */
export function EmptyState({ sentence, action, curl }: Props) {
  return (
    <div className="card empty">
      <p>{sentence}</p>
      {action}
      <Snippet code={curl} label="The same with curl" language="curl" />
    </div>
  )
}
