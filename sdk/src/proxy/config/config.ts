import type { Service } from '../../discovery/service.ts'
import type { Protocol } from '../../types.ts'

/** Settings for every paid route; a route can override them. They are the same as the options of a paywall. */
export type ProxyDefaults = {
  /** Which protocols to offer, any of `mpp`, `l402` and `x402`. Default: `['mpp']`. */
  protocols?: readonly Protocol[] | undefined
  /** Whether an L402 credential can be reused until it expires. Default: `24h` if only L402 is offered, otherwise `never`. */
  l402?: { reuse: '24h' | 'never' } | undefined
  /** `true`: the upstream uses `Authorization` itself. MPP clients must then send their credential in `Payment-Authorization`. */
  requiresAuth?: boolean | undefined
  /** x402: the names of all headers that change what is sold. */
  bindHeaders?: readonly string[] | undefined
  /** By what fraction the paid price may be below the current price, less than 1. Default: 0.1, or 0 if you set `resource`. */
  priceTolerance?: number | undefined
  /** How long a delivery may take before the payment can be used again, 1 to 600. Default: 120. */
  holdSeconds?: number | undefined
  /** `false`: the payment is used up even if the customer disconnects before the response. Default: true. */
  releaseOnDisconnect?: boolean | undefined
  /** `true`: a browser gets a page with the invoice as a QR code. */
  html?: boolean | undefined
  /** `pass`: the upstream responds to OPTIONS. Default: the proxy responds, free of charge. */
  options?: 'answer' | 'pass' | undefined
  timeouts?: {
    /** How long the upstream may take to begin its response, once it has the request. Default: 60,000. */
    firstByteMs?: number | undefined
  }
}

export type Bind = 'route' | 'path' | 'url'

/** Exactly one of `amountSat`, `priceFrom`, `free` and `deny`. */
export type ProxyRouteConfig = ProxyDefaults & {
  /** `GET /articles/:id`, `GET|POST /search`, `/files/**`. Without a method, it matches all methods. */
  match: string
  amountSat?: number | undefined
  /** A URL that returns the price: `POST { method, url, bodySha256 }` → `{ amountSat, description? }`. */
  priceFrom?: string | undefined
  free?: true | undefined
  /** The status to respond with, such as 404. */
  deny?: number | undefined
  /**
   * What a payment is for. `route`: anything this route matches; `path`: the path of the request; `url`: its path and query.
   * Default: `path`, or `url` with `priceFrom`.
   */
  bind?: Bind | undefined
  /** Instead of `bind`: a name for what a payment gives access to. Routes with the same name share it. */
  resource?: string | undefined
  /** The text customers see. Default: `match`. */
  description?: string | undefined
}

/** What the documents say about the service. Their prices are those of the routes. */
export type ProxyDiscovery = Pick<Service, 'title' | 'description' | 'version' | 'categories' | 'docs'>

export type ProxyConfig = ProxyDefaults & {
  /** Where to listen: `host:port`. Default: `127.0.0.1:8080`. */
  listen?: string | number | undefined
  /** Where requests go: `http://127.0.0.1:3000`. */
  upstream: string
  /** The id of the node that receives the payments. */
  node: string
  /** The first route that matches is used. If none does, the response is 404. */
  routes: readonly ProxyRouteConfig[]
  limits?:
    | {
        /** How many unpaid challenges one client address may have open in this process; 0 for no limit. Default: 100. */
        openChallengesPerAddress?: number | undefined
        /** The largest request body. Default: 10 MiB. */
        maxBodyBytes?: number | undefined
      }
    | undefined
  /** Changes to the headers of every request that goes to the upstream, made last. */
  headers?: { set?: Readonly<Record<string, string>> | undefined; remove?: readonly string[] | undefined } | undefined
  /** The URL that customers use, such as `https://api.example.com`. x402 needs it if TLS ends in front of this proxy. */
  publicUrl?: string | undefined
  /** How many proxies are in front of this one, or their addresses. Default: false, none. */
  trustProxy?: false | number | readonly string[] | undefined
  /** Serves `/openapi.json`, `/.well-known/l402.json` and `/llms.txt`, before all routes. Default: they are not served. */
  discovery?: ProxyDiscovery | undefined
  /** With `discovery`: your own OpenAPI 3 document. Prices are added to its operations. */
  openapi?: object | undefined
}

/** A route, as it is in effect. */
export type ProxyRoute = {
  match: string
  /** Undefined: every method. */
  methods: readonly string[] | undefined
  path: string
  access: 'paid' | 'free' | 'denied'
  /** Of a paid route. Null if `priceFrom` is asked for each request. */
  amountSat?: number | null
  /** Without its query, which may hold a key. */
  priceFrom?: string
  protocols?: readonly Protocol[]
  description?: string
  /** What a payment is for, unless the route has a `resource`. */
  bind?: Bind
  resource?: string
  /** Of a denied route. */
  status?: number
}

/** A mistake in a configuration, and where it is: `['routes', 2, 'amountSat']`. */
export type ConfigMistake = {
  path: readonly (string | number)[]
  message: string
  /** The allowed names, if this one is unknown. */
  known?: readonly string[]
}

export class ProxyConfigError extends TypeError {
  readonly mistakes: readonly ConfigMistake[]

  constructor(mistakes: readonly ConfigMistake[]) {
    super(`The proxy's configuration is invalid. ${mistakes.map(textOf).join(' ')}`)
    this.name = 'ProxyConfigError'
    this.mistakes = mistakes
  }
}

const textOf = ({ path, message }: ConfigMistake): string => `${placeOf(path)}: ${message}`

/** `routes[2].amountSat` */
export function placeOf(path: readonly (string | number)[]): string {
  const place = path.map((step) => (typeof step === 'number' ? `[${step}]` : `.${step}`)).join('')
  return place.replace(/^\./, '') || 'the configuration'
}
