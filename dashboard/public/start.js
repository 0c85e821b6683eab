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
  const explain = () => {
    const starting = document.querySelector('#root > .starting')
    if (!starting) return
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
  let isReloading = false
  let isLoaded = false
  const recover = ({ target }) => {
    // Later, the app handles errors itself: a reload would discard what somebody is typing.
    if (isReloading || isLoaded || !target.matches?.('script[type=module], link[rel=stylesheet]')) return
    hasFailed = true
    const failed = attempts()
    if (failed < MOST_ATTEMPTS) {
      isReloading = true
      sessionStorage.setItem(KEY, String(failed + 1))
      setTimeout(reload, FIRST_PAUSE_MS * 2 ** failed)
    } else if (target.matches('script')) explain()
  }
  const finish = () => {
    isLoaded = true
    if (hasFailed) return
    try {
      sessionStorage.removeItem(KEY)
    } catch {
      // Storage is blocked, so nothing was counted.
    }
  }
  window.addEventListener('error', recover, true)
  window.addEventListener('load', finish)
})()
