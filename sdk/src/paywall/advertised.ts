import type { PaywallOptions } from './options.ts'

type Options = PaywallOptions<never>

/** The options of each paywall, so that discovery needs no second list of prices. The key is its function `ready`. */
const options = new WeakMap<object, Options>()
/** The `Link` header for the 402s of the paywalls with these options. */
const links = new WeakMap<object, string>()

export const rememberOptions = <R>(ready: object, given: PaywallOptions<R>): void => void options.set(ready, given as Options)

export const optionsOf = ({ ready }: { ready: object }): Options | undefined => options.get(ready)

export const advertise = (given: object, link: string): void => void links.set(given, link)

export const linkOf = (given: object): string | undefined => links.get(given)
