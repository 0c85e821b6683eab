import { type ReactNode, useEffect, useRef } from 'react'

let isFirst = true

export function useTitle(title: string): void {
  useEffect(() => {
    document.title = `${title} · Boltyard`
  }, [title])
}

type Props = { title: string; heading?: ReactNode; trail?: ReactNode; actions?: ReactNode; children: ReactNode }

/**
 * The heading takes the focus after navigation. Otherwise the focus disappears with the link, and a screen reader does not announce the
 * new page. Not on the first page, which the browser announces itself.
 */
export function Page({ title, heading, trail, actions, children }: Props) {
  const head = useRef<HTMLHeadingElement>(null)
  useTitle(title)
  useEffect(() => {
    if (!isFirst) head.current?.focus()
    isFirst = false
  }, [])
  return (
    <div className="page">
      {trail}
      <div className="page-head">
        <h1 ref={head} tabIndex={-1}>
          {heading ?? title}
        </h1>
        {actions}
      </div>
      {children}
    </div>
  )
}
