// Runs before the first paint. Otherwise a person who chose dark on a light system would see a white page until the app has loaded.
;(() => {
  let chosen = null
  try {
    chosen = localStorage.getItem('boltyard-theme')
  } catch {}
  const isDark = chosen === 'dark' || (chosen !== 'light' && matchMedia('(prefers-color-scheme: dark)').matches)
  document.documentElement.setAttribute('data-mantine-color-scheme', isDark ? 'dark' : 'light')
})()
