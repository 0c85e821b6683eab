import { Agent, request } from 'node:http'

/** A running node's own API: phoenixd's, or the sandbox daemon's, which is the same. */
export type NodeInfo = {
  nodeId: string
  version: string
  blockHeight: number | undefined
  channels: { state: string; balanceSat?: number }[]
}

/** refused: nobody listens. silent: somebody does, and does not answer. */
export type InfoAnswer = { answer: 'info'; info: NodeInfo } | { answer: 'refused' | 'silent' | 'wrong password' | 'nonsense' }

const agent = new Agent({ keepAlive: false })
const MAX_BYTES = 1024 * 1024

export function getInfo(port: number, password: string, timeoutMs: number): Promise<InfoAnswer> {
  return new Promise((resolve) => {
    const authorization = `Basic ${Buffer.from(`:${password}`).toString('base64')}`
    const outgoing = request(
      { host: '127.0.0.1', port, path: '/getinfo', agent, headers: { authorization }, signal: AbortSignal.timeout(timeoutMs) },
      (response) => {
        let text = ''
        response.setEncoding('utf8')
        response.on('data', (chunk: string) => {
          text += chunk
          if (text.length > MAX_BYTES) response.destroy()
        })
        response.on('error', () => resolve({ answer: 'silent' }))
        response.on('end', () => {
          if (response.statusCode === 401) return resolve({ answer: 'wrong password' })
          const info = parseInfo(text)
          resolve(info ? { answer: 'info', info } : { answer: 'nonsense' })
        })
      },
    )
    outgoing.on('error', (error: NodeJS.ErrnoException) =>
      resolve({ answer: error.code === 'ECONNREFUSED' ? 'refused' : 'silent' }),
    )
    outgoing.end()
  })
}

function parseInfo(text: string): NodeInfo | undefined {
  try {
    const { nodeId, version, blockHeight, channels } = JSON.parse(text) as Partial<NodeInfo>
    return typeof nodeId === 'string' && typeof version === 'string' && Array.isArray(channels)
      ? { nodeId, version, blockHeight, channels }
      : undefined
  } catch {
    return undefined
  }
}

/**
 * Undefined: this answer tells nothing. Channels that are offline or syncing hide their balance, and a daemon that does not know the
 * block height yet has not restored its channels: it lists none, however much is in them.
 */
export function hasFunds({ blockHeight, channels }: NodeInfo): boolean | undefined {
  if (blockHeight === undefined || channels.some(({ state }) => state !== 'Normal')) return undefined
  return channels.some(({ balanceSat = 0 }) => balanceSat > 0)
}
