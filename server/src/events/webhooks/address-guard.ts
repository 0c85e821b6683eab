import { Resolver } from 'node:dns'
import { lookup } from 'node:dns/promises'
import { BlockList, isIP } from 'node:net'
import { networkInterfaces } from 'node:os'

/** A refused URL or address. The webhook's owner sees the message. */
export class AddressRefused extends Error {
  readonly code = 'ADDRESS_REFUSED'
}

export type GuardOptions = {
  /** Private addresses are reached only if the operator allows it. */
  allowPrivate: boolean
  allowHttp: boolean
  /** Ports of this machine that the service or its nodes use. */
  isOwnPort: (port: number) => boolean
  /** All addresses of a name. */
  resolve: (host: string) => Promise<string[]>
}

/** The owner of a webhook chooses where the service connects to. This must not let them reach what only the service can reach. */
export class AddressGuard {
  readonly #options: GuardOptions

  constructor(options: GuardOptions) {
    this.#options = options
  }

  /** Throws an error for the webhook's owner. The name is not resolved: only its addresses at the time of an attempt count. */
  checkUrl(text: string): URL {
    // Parsing also turns every spelling of an IPv4 address, such as 0x7f.1 or 2130706433, into the usual one.
    const url = URL.canParse(text) ? new URL(text) : undefined
    if (url?.protocol !== 'https:' && !(url?.protocol === 'http:' && this.#options.allowHttp))
      throw new AddressRefused(`The URL must begin with https://${this.#options.allowHttp ? ' or http://' : ''}.`)
    if (url.username !== '' || url.password !== '') throw new AddressRefused('The URL must not contain credentials.')
    if (url.hash !== '') throw new AddressRefused('The URL must not contain a fragment.')
    const host = hostOf(url)
    if (isIP(host) !== 0) this.#check(host, portOf(url))
    return url
  }

  /** The addresses that may be connected to. Throws if there are none. */
  async addressesOf(url: URL): Promise<string[]> {
    const host = hostOf(url)
    const addresses = isIP(host) === 0 ? await this.#options.resolve(host) : [host]
    // One forbidden address is enough to refuse the name: mixing both kinds is an attempt to get around this check.
    for (const address of addresses) this.#check(address, portOf(url))
    if (addresses.length === 0) throw new AddressRefused('The host name has no address.')
    return addresses
  }

  #check(address: string, port: number): void {
    const { allowPrivate, isOwnPort } = this.#options
    const isAllowed = isIP(address) !== 0 && (isGlobal(address) || (allowPrivate && !isNeverAllowed(address)))
    if (!isAllowed) throw new AddressRefused('The host must be reachable from the internet.')
    if (isOwnPort(port) && isThisMachine(address)) throw new AddressRefused('The port must not belong to this service.')
  }
}

const hostOf = (url: URL): string => url.hostname.replace(/^\[|\]$/g, '')
export const portOf = (url: URL): number => Number(url.port) || (url.protocol === 'https:' ? 443 : 80)

function listOf(...subnets: string[]): BlockList {
  const list = new BlockList()
  for (const subnet of subnets) {
    const [network = '', bits] = subnet.split('/')
    list.addSubnet(network, Number(bits), network.includes(':') ? 'ipv6' : 'ipv4')
  }
  return list
}

/** An address with a zone, such as fe80::1%eth0, does not parse here and matches every list. */
const matches = (list: BlockList, address: string): boolean =>
  address.includes('%') || list.check(address, isIP(address) === 4 ? 'ipv4' : 'ipv6')

/** The special-purpose addresses of IANA that are not globally reachable, and those that lead to other addresses: 6to4 and its relays. */
const NOT_GLOBAL_IPV4 = listOf(
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.31.196.0/24',
  '192.52.193.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '192.175.48.0/24',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/3',
)
/** Addresses are assigned only from here: everything else, such as IPv4-mapped and NAT64 addresses, is not global. */
const ASSIGNED_IPV6 = listOf('2000::/3')
const NOT_GLOBAL_IPV6 = listOf('2001::/23', '2001:db8::/32', '2002::/16', '2620:4f:8000::/48', '3fff::/20')

/** Where clouds serve credentials to anyone who asks: link-local addresses, and private ones in IPv6. AWS, Google Cloud, Oracle Cloud. */
const METADATA_IPV6 = ['fd00:ec2::254/128', 'fd20:ce::254/128', 'fd00:c1::a9fe:a9fe/128']
/** Link-local addresses and multicast. */
const NEVER_IPV4 = listOf('169.254.0.0/16', '224.0.0.0/3')
/** Also those that contain an IPv4 address, which could be one of the above. */
const NEVER_IPV6 = listOf(
  ...METADATA_IPV6,
  'fe80::/10',
  'ff00::/8',
  '64:ff9b::/96',
  '64:ff9b:1::/48',
  '2002::/16',
  '::ffff:0:0/96',
)

/** One list per family: Node.js also compares IPv4 addresses with IPv4-mapped networks. */
const isNeverAllowed = (address: string): boolean => matches(isIP(address) === 4 ? NEVER_IPV4 : NEVER_IPV6, address)

function isGlobal(address: string): boolean {
  if (isIP(address) === 4) return !matches(NOT_GLOBAL_IPV4, address)
  return !address.includes('%') && matches(ASSIGNED_IPV6, address) && !matches(NOT_GLOBAL_IPV6, address)
}

const LOOPBACK = listOf('0.0.0.0/8', '127.0.0.0/8', '::/127')

function isThisMachine(address: string): boolean {
  if (matches(LOOPBACK, address)) return true
  return Object.values(networkInterfaces()).some((one) => one?.some((local) => local.address === address))
}

/** Resolves names like other programs on this machine, including its hosts file. */
export const resolveLocally = async (host: string): Promise<string[]> =>
  (await lookup(host, { all: true })).map(({ address }) => address)

const DNS_TIMEOUT_MS = 2_000
const DNS_TRIES = 2

/**
 * Asks the name servers. Unlike a system look-up, this does not occupy a thread of the pool while a name server does not respond.
 */
export async function resolveByDns(host: string): Promise<string[]> {
  const resolver = new Resolver({ timeout: DNS_TIMEOUT_MS, tries: DNS_TRIES })
  const ask = (method: 'resolve4' | 'resolve6'): Promise<string[]> =>
    new Promise((resolve, reject) => resolver[method](host, (error, addresses) => (error ? reject(error) : resolve(addresses))))
  const [ipv4, ipv6] = await Promise.allSettled([ask('resolve4'), ask('resolve6')])
  if (ipv4.status === 'rejected' && ipv6.status === 'rejected') throw ipv4.reason
  return [...(ipv4.status === 'fulfilled' ? ipv4.value : []), ...(ipv6.status === 'fulfilled' ? ipv6.value : [])]
}
