import { createBrowserHistory } from '@tanstack/react-router'
import { takeLinkToken } from './link-token.ts'

// Before the router remembers the address: the token would otherwise come back with the next navigation.
takeLinkToken()

/** Beside the router, for what is not a page and still has to send people to one. */
export const history = createBrowserHistory()
