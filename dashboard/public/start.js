// If the app's code cannot be loaded, for example because the network has just changed, nothing else would ever replace the loading state.
;(() => {
  const KEY = 'boltyard-start-attempts'
  const MOST_ATTEMPTS = 3
  const FIRST_PAUSE_MS = 500

  const attempts = () => {
    try {
      return Number(sessionStorage.getItem(KEY))
    } catch {
      return MOST_ATTEMPTS
    }
  }
  const reload = () => window.location.reload()
  const explain = (starting) => {
    const [text, button] = [document.createElement('p'), document.createElement('button')]
    text.textContent = 'Boltyard could not be loaded. Check your connection, then reload the page.'
    button.textContent = 'Reload'
    button.addEventListener('click', reload)
    starting.setAttribute('role', 'alert')
    starting.removeAttribute('aria-label')
    starting.replaceChildren(text, button)
    window.addEventListener('online', reload)
  }

  let hasFailed = false
  const recover = ({ target }) => {
    const starting = document.querySelector('#root > .starting')
    // The loading state is gone once the app runs, which then handles errors itself.
    if (hasFailed || !starting || !target.matches?.('script[type=module], link[rel=stylesheet]')) return
    hasFailed = true
    const failed = attempts()
    if (failed < MOST_ATTEMPTS) {
      sessionStorage.setItem(KEY, String(failed + 1))
      setTimeout(reload, FIRST_PAUSE_MS * 2 ** failed)
    } else if (target.matches('script')) explain(starting)
  }
  const forget = () => {
    if (hasFailed) return
    try {
      sessionStorage.removeItem(KEY)
    } catch {
      // Storage is blocked, so nothing was counted.
    }
  }
  window.addEventListener('error', recover, true)
  window.addEventListener('load', forget)
})()
