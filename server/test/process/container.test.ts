import { expect, test } from 'vitest'
import { SERVER } from '../../../testing/bundles.ts'
import { callNode, isRunning, newOwner, runningPidOf } from '../support/nodes.ts'
import { startServer } from '../support/server.ts'

/** The service as root in a container. Unlike root elsewhere, it cannot inspect the processes of other users. */

/** Docker’s default. */
const CAPABILITIES =
  'chown dac_override fsetid fowner mknod net_raw setgid setuid setfcap setpcap net_bind_service sys_chroot kill audit_write'
const granted = ['-all', ...CAPABILITIES.split(' ').map((name) => `+${name}`)].join(',')
const AS_IN_A_CONTAINER = ['setpriv', `--bounding-set=${granted}`, '--inh-caps=-all', process.execPath, SERVER]

const isRoot = process.getuid?.() === 0
if (!isRoot) process.stderr.write('SKIPPED: the tests of root in a container need root\n')

test.skipIf(!isRoot)(
  'as root in a container, the service starts, and after kill -9 finds PostgreSQL and its nodes again',
  async () => {
    const server = await startServer({ store: 'embedded', command: AS_IN_A_CONTAINER })
    const owner = await newOwner(server)
    const { node, credentials } = await owner.createReady()
    const processes = (): number[] => [server.postmasterPid, runningPidOf(server, node)]
    const before = processes()
    await server.restart('SIGKILL')
    expect(processes()).toEqual(before)
    expect((await owner.get(node.id)).status).toBe('ready')
    expect((await callNode(node, credentials.password, 'GET', '/getinfo')).status).toBe(200)
    await server.stop()
    expect(before.map(isRunning), 'PostgreSQL is stopped, and the node keeps running').toEqual([false, true])
  },
)
