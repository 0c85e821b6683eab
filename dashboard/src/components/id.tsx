import { Fragment } from 'react'

const PARTS = /^[a-z]+_|.{1,10}/g

/** In a narrow place, an id breaks only between groups of ten characters. Copied text contains no break. */
export function Id({ id }: { id: string }) {
  return (
    <span className="mono">
      {(id.match(PARTS) ?? []).map((part, place) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the parts never move
        <Fragment key={place}>
          {place > 1 && <wbr />}
          {part}
        </Fragment>
      ))}
    </span>
  )
}
