import { VisuallyHidden } from '@mantine/core'
import { Fragment, type ReactNode, useState } from 'react'
import { type CodeLanguage, tokensOf } from '../text/code/highlight.ts'

/** Colored by classes, because the Content-Security-Policy allows no inline styles. */
export function Code({ code, language }: { code: string; language: CodeLanguage }) {
  let at = 0
  return tokensOf(code, language).map(({ kind, text }) => {
    const key = at
    at += text.length
    return kind ? (
      <span key={key} className={`code-${kind}`}>
        {text}
      </span>
    ) : (
      <Fragment key={key}>{text}</Fragment>
    )
  })
}

/** Longer texts are cut until someone asks for the rest. */
const LONG_TEXT = 240
const SHOWN_OF_LONG = 80
/** Longer objects and lists begin folded, except the outermost. */
const LONG_LINES = 12

type JsonProps = {
  value: unknown
  name?: string | undefined
  indent?: string
  end?: string
  /** Everything begins unfolded. */
  isUnfolded?: boolean
}

/** JSON as `JSON.stringify(value, null, 2)` writes it, where objects, lists and long texts can be folded. */
export function Json({ value, name, indent = '', end = '', isUnfolded = false }: JsonProps) {
  const label = name === undefined ? '' : `${JSON.stringify(name)}: `
  const start = (
    <>
      {indent}
      {label && <Code code={label} language="json" />}
    </>
  )
  if (typeof value === 'string' && value.length > LONG_TEXT) return <LongText text={value} start={start} end={end} name={name} />
  const text = JSON.stringify(value, null, 2) ?? 'null'
  if (typeof value !== 'object' || value === null || Object.keys(value).length === 0)
    return (
      <>
        {start}
        <Code code={text} language="json" />
        {end}
      </>
    )
  const isShort = text.split('\n').length <= LONG_LINES
  return <Branch {...{ value, name, indent, end, start, isUnfolded }} opens={isUnfolded || isShort || indent === ''} />
}

type BranchProps = {
  value: object
  name: string | undefined
  indent: string
  end: string
  start: ReactNode
  isUnfolded: boolean
  opens: boolean
}

function Branch({ value, name, indent, end, start, isUnfolded, opens }: BranchProps) {
  const [isOpen, setOpen] = useState(opens)
  const isList = Array.isArray(value)
  const [open, close] = isList ? '[]' : '{}'
  const entries = Object.entries(value)
  return (
    <>
      {start}
      {open}
      <button
        type="button"
        className="code-fold"
        aria-expanded={isOpen}
        aria-label={`${name ?? 'All'}, ${entries.length} ${isList ? 'items' : 'fields'}`}
        onClick={() => setOpen(!isOpen)}
      />
      {isOpen ? '\n' : `… ${entries.length} ${isList ? 'items' : 'fields'} `}
      {isOpen &&
        entries.map(([key, one], at) => (
          <Fragment key={key}>
            <Json
              value={one}
              name={isList ? undefined : key}
              indent={`${indent}  `}
              end={at === entries.length - 1 ? '' : ','}
              isUnfolded={isUnfolded}
            />
            {'\n'}
          </Fragment>
        ))}
      {isOpen && indent}
      {close}
      {end}
    </>
  )
}

function LongText({ text, start, end, name }: { text: string; start: ReactNode; end: string; name: string | undefined }) {
  const [isOpen, setOpen] = useState(false)
  const all = JSON.stringify(text)
  return (
    <>
      {start}
      <span className="code-text">{isOpen ? all : `${all.slice(0, SHOWN_OF_LONG)}…`}</span>
      {end}{' '}
      <button type="button" className="code-more" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        {isOpen ? 'Show less' : `Show all ${text.length} characters`}
        {name !== undefined && (
          <VisuallyHidden component="span">
            {' '}
            of <bdi>{name}</bdi>
          </VisuallyHidden>
        )}
      </button>
    </>
  )
}
