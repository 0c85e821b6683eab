const OTHERWISE = 'en-GB'

/** The languages that the browser asks for, for dates and times. An unusable tag must not keep the page from starting. */
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
