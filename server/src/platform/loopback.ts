import { isIP } from 'node:net'

/** A name or an address, as in a URL or as of a socket. A name that only begins with 127 is somebody else's. */
export function isLoopback(host: string): boolean {
  const bare = host.replace(/^\[|\]$/g, '').replace(/^::ffff:(?=\d+\.)/i, '')
  return bare === 'localhost' || bare === '::1' || (isIP(bare) === 4 && bare.startsWith('127.'))
}
