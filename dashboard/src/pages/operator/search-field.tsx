import { TextInput } from '@mantine/core'
import { IconSearch } from '@tabler/icons-react'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useEffect, useState } from 'react'

const FROM = '/operator/{-$section}/{-$id}'
const PAUSE_MS = 250

export const useOperatorSearch = () => useSearch({ from: FROM })

/** The search text is in the URL, so that the back button returns to the same results. */
export function SearchField({ label, placeholder }: { label: string; placeholder: string }) {
  const { search: shown = '' } = useOperatorSearch()
  const [text, setText] = useState(shown)
  const navigate = useNavigate({ from: FROM })
  useEffect(() => {
    const wanted = text.trim()
    if (wanted === shown) return
    const timer = setTimeout(() => {
      void navigate({ search: (before) => ({ ...before, search: wanted || undefined }), replace: true })
    }, PAUSE_MS)
    return () => clearTimeout(timer)
  }, [text, shown, navigate])
  return (
    <TextInput
      label={label}
      placeholder={placeholder}
      type="search"
      leftSection={<IconSearch size={16} aria-hidden />}
      value={text}
      dir="auto"
      autoComplete="off"
      onChange={(event) => setText(event.currentTarget.value)}
    />
  )
}
