import { IconCircleCheck } from '@tabler/icons-react'
import type { ReactNode } from 'react'

/** A payment that was made: an icon, a word and the amount. */
export function Success({ word, children }: { word: 'Paid' | 'Sent'; children?: ReactNode }) {
  return (
    <div className="paid" data-testid={word.toLowerCase()}>
      <IconCircleCheck size={28} aria-hidden /> {word} {children}
    </div>
  )
}
