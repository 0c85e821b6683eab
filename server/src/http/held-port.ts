import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'

export type HeldPort = { port: number; release: () => Promise<void> }

/** Reserves a free port until it is released: nodes and links get URLs that contain the port before the service listens on it. */
export async function holdFreePort(host: string): Promise<HeldPort> {
  const server = createServer((socket) => socket.destroy())
  server.listen({ host, port: 0 })
  await once(server, 'listening')
  const release = async (): Promise<void> => {
    if (!server.listening) return
    server.close()
    await once(server, 'close')
  }
  return { port: (server.address() as AddressInfo).port, release }
}
