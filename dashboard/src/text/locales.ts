const OTHERWISE = 'en-GB'

/** The browser's languages, for dates and times in digits. An invalid language tag must not prevent the page from starting. */
export function localesOf(wanted: readonly string[] | undefined): string[] {
  const usable = (wanted ?? []).filter((tag) => {
    try {
      return Intl.DateTimeFormat.supportedLocalesOf(tag).length > 0
    } catch {
      return false
    }
  })
  return [...usable, OTHERWISE]
}

export const LOCALES = localesOf(globalThis.navigator?.languages)
const [FIRST = OTHERWISE] = LOCALES

/** For dates with the names of months or days, which are English like the rest of the page. */
export const ENGLISH = new Intl.Locale(FIRST).language === 'en' ? FIRST : OTHERWISE
