/** What visits are counted by: an IPv4 address, or the /64 network of an IPv6 address, because one customer controls a whole /64. */
export function addressGroup(address: string): string {
  const text = address.split('%')[0] ?? ''
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(text)?.[1]
  if (mapped !== undefined || !text.includes(':')) return mapped ?? text
  const [before = '', after] = text.split('::')
  const head = before === '' ? [] : before.split(':')
  const tail = after === undefined || after === '' ? [] : after.split(':')
  // An IPv4 tail counts as two groups.
  const missing = 8 - head.length - tail.length - (text.includes('.') ? 1 : 0)
  const groups = [...head, ...Array<string>(Math.max(0, after === undefined ? 0 : missing)).fill('0'), ...tail]
  const network = groups.slice(0, 4).map((group) => group.toLowerCase().replace(/^0+(?=.)/, ''))
  return `${network.join(':')}::/64`
}
