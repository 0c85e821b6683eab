import { createBrowserHistory } from '@tanstack/react-router'
import { takeLinkToken } from './link-token.ts'

// Must run before the router stores the URL. Otherwise the token would be in the URL again after the next navigation.
takeLinkToken()

/** Separate from the router, for code outside of pages that needs to navigate. */
export const history = createBrowserHistory()
