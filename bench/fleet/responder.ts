import { createServer } from 'node:http'

/**
 * Stands in for the API of every node of a fleet, in a separate process, so that its CPU time is not measured. All nodes have the same
 * identity and password. The addresses and the response are given as arguments.
 */

const [list = '', port = '', lightningId = '', version = '', balanceSat = ''] = process.argv.slice(2)
const body = JSON.stringify({
  nodeId: lightningId,
  channels: [
    {
      state: 'Normal',
      channelId: '0'.repeat(64),
      balanceSat: Number(balanceSat),
      inboundLiquiditySat: 1_000,
      capacitySat: 2_000,
    },
  ],
  chain: 'regtest',
  blockHeight: 1_000,
  version,
})
const listen = (address: string): Promise<unknown> => {
  const http = createServer((request, response) => {
    const answer = request.url === '/getinfo' ? body : request.url?.startsWith('/payments/incoming?') ? '[]' : undefined
    response.writeHead(answer === undefined ? 404 : 200, { 'content-type': 'application/json' }).end(answer ?? '{}')
  })
  return new Promise<void>((resolve) => http.listen(Number(port), address, resolve))
}
await Promise.all(list.split(',').map(listen))
process.send?.('ready')
// The bench has ended.
process.on('disconnect', () => process.exit())
