import { CopyButton } from './copy-button.tsx'

type Props = { code: string; label: string; wraps?: boolean }

/** Reachable by keyboard, because what is longer than the box must be scrolled. */
export function Snippet({ code, label, wraps = false }: Props) {
  return (
    <div className={wraps ? 'snippet snippet-wrap' : 'snippet'}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls must be reachable without a mouse */}
      <section tabIndex={0} aria-label={label}>
        <pre>
          <code>{code}</code>
        </pre>
      </section>
      <div className="snippet-copy">
        <CopyButton text={code} label={`Copy: ${label}`} />
      </div>
    </div>
  )
}
