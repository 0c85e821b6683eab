import { useState } from 'react'
import { LANGUAGES, type Language } from './program-snippets.ts'

export const isLanguage = (value: string | null): value is Language => value !== null && value in LANGUAGES

const KEY = 'boltyard-language'

/** The language of the snippets, remembered in this browser. */
export function useLanguage(): [Language, (language: Language) => void] {
  const [language, setLanguage] = useState(remembered)
  const choose = (chosen: Language) => {
    setLanguage(chosen)
    try {
      localStorage.setItem(KEY, chosen)
    } catch {
      // Storage is blocked, so the choice is lost when the page is left.
    }
  }
  return [language, choose]
}

function remembered(): Language {
  try {
    const found = localStorage.getItem(KEY)
    return isLanguage(found) ? found : 'curl'
  } catch {
    return 'curl'
  }
}
