import '../styles/code.css'
import { ActionIcon } from '@mantine/core'
import { IconTextWrap } from '@tabler/icons-react'
import { useState } from 'react'
import type { CodeLanguage } from '../text/code/highlight.ts'
import { Code, Json } from './code.tsx'
import { CopyButton } from './copy-button.tsx'

type Props = {
  code: string
  label: string
  wraps?: boolean
  language?: CodeLanguage | undefined
  /** False if the page has a larger copy button. */
  canCopy?: boolean
  onCopied?: () => void
  /** Shown below the code, and copied with it. */
  json?: unknown
  /** The JSON begins unfolded. */
  isUnfolded?: boolean
}

/** Focusable, so that long code can be scrolled with the keyboard. */
export function Snippet({ code, label, wraps = false, language, canCopy = true, onCopied, json, isUnfolded = false }: Props) {
  const [isWrapped, setWrapped] = useState(wraps)
  const hasJson = json !== undefined
  const all = hasJson ? [code, JSON.stringify(json, null, 2)].filter(Boolean).join('\n\n') : code
  const canWrap = language !== undefined && !wraps
  return (
    <div className={`snippet${isWrapped ? ' snippet-wrap' : ''}${canWrap ? ' snippet-two' : ''}`}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable box must be reachable by keyboard */}
      <section tabIndex={0} aria-label={label}>
        <pre>
          <code>
            {language ? <Code code={code} language={language} /> : code}
            {hasJson && code !== '' && '\n\n'}
            {hasJson && <Json value={json} isUnfolded={isUnfolded} />}
          </code>
        </pre>
      </section>
      <div className="snippet-copy">
        {canWrap && (
          <ActionIcon
            variant="subtle"
            color="gray"
            aria-label={`Wrap lines: ${label}`}
            title="Wrap lines"
            aria-pressed={isWrapped}
            onClick={() => setWrapped(!isWrapped)}
          >
            <IconTextWrap size={16} aria-hidden />
          </ActionIcon>
        )}
        {canCopy && <CopyButton text={all} label={`Copy: ${label}`} onCopied={onCopied} />}
      </div>
    </div>
  )
}
