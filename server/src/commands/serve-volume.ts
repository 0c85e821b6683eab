import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { StartFault } from '../platform/start-fault.ts'
import { passwordIn, volumeServer } from '../runtimes/kubernetes/moving/volume-server.ts'

/** Not for operators: it runs in a pod of the cluster while `adopt` or `release` moves a wallet, until SIGTERM. */
export async function serveVolume(args: string[], directory: string | undefined): Promise<void> {
  const text = { type: 'string' } as const
  const { values } = parseArgs({
    args,
    options: { 'http-bind-ip': text, 'http-bind-port': text, conf: text, writable: { type: 'boolean' } },
  })
  if (directory === undefined || values.conf === undefined) throw new StartFault(78, 'serve-volume: runs only in a pod of a node')
  const password = passwordIn(readFileSync(values.conf, 'utf8'))
  const server = volumeServer({ directory, password, isWritable: values.writable ?? false })
  server.listen(Number(values['http-bind-port']), values['http-bind-ip'])
  await once(process, 'SIGTERM')
  server.close()
  server.closeAllConnections()
}
