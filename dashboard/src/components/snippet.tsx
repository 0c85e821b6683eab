import { CopyButton } from './copy-button.tsx'

type Props = { code: string; label: string; wraps?: boolean }

/** Focusable, so that long code can be scrolled with the keyboard. */
export function Snippet({ code, label, wraps = false }: Props) {
  return (
    <div className={wraps ? 'snippet snippet-wrap' : 'snippet'}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable box must be reachable by keyboard */}
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
