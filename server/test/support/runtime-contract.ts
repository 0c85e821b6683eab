import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { eventually, Hopeless } from '../../../testing/eventually.ts'
import { createInvoice, getInfo } from '../../src/lightning/phoenixd/client.ts'
import { lightningIdOf } from '../../src/nodes/lightning-id.ts'
import { newMaterial } from '../../src/nodes/material.ts'
import {
  CannotStart,
  type NodeMaterial,
  type NodeSpec,
  type Observation,
  type Runtime,
  TryAgain,
} from '../../src/nodes/runtime.ts'
import { NEVER_STARTED, Specs, started, wanting } from './specs.ts'

/** A runtime with versions 0.8.0 and 0.9.0 of the sandbox daemon, and 1.0.0, which does not run. */
export type OpenedRuntime = {
  runtime: Runtime
  /** The same runtime as a new process of the service finds it. */
  reopen: () => Runtime
  /** Ends the node's process directly, as a crash would. */
  crash: (nodeId: string) => Promise<void>
  close: () => Promise<void>
}

const mine = async (): Promise<boolean> => true

/** What every runtime promises, wherever it runs nodes. */
export function describeRuntime(
  name: string,
  open: (materialOf: (nodeId: string) => NodeMaterial) => Promise<OpenedRuntime>,
): void {
  describe(`runtime: ${name}`, () => {
    const specs = new Specs()
    const { materialOf } = specs
    let opened: OpenedRuntime

    beforeAll(async () => {
      opened = await open(materialOf)
    })
    afterAll(() => opened?.close())

    const becomes = (node: NodeSpec, phase: string, runtime = opened.runtime): Promise<Observation> =>
      eventually(async () => {
        const seen = await runtime.observe(node)
        return seen.observed.phase === phase ? seen : undefined
      }, `${node.id} to be ${phase}`)
    const running = async (node = specs.add()): Promise<NodeSpec> => {
      await opened.runtime.start(node, materialOf(node.id), mine)
      const after = started(node)
      await becomes(after, 'running')
      return after
    }
    /** Calls `kill` until the node has exited, as the reconciler does when an update does not start. */
    const ended = async (node: NodeSpec): Promise<Observation> => {
      await eventually(async () => {
        const { observed } = await opened.runtime.observe(node)
        return observed.phase !== 'starting' || observed.reason !== undefined
      }, `${node.id} to run or to say why it does not`)
      return eventually(async () => {
        const seen = await opened.runtime.observe(node)
        if (seen.observed.phase === 'exited') return seen
        await opened.runtime.kill(node)
        return undefined
      }, `${node.id} to be killed`)
    }
    const stopped = async (node: NodeSpec): Promise<void> => {
      await eventually(async () => {
        await opened.runtime.stop(node)
        return ['exited', 'absent'].includes((await opened.runtime.observe(node)).observed.phase)
      }, `${node.id} to stop`)
    }

    /** Repeats the removal while its outcome is unknown, as the service does. */
    const removed = async (node: NodeSpec): Promise<void> => {
      await eventually(async () => {
        try {
          await opened.runtime.remove(node)
          return true
        } catch (error) {
          if (error instanceof TryAgain) return false
          throw new Hopeless(String(error))
        }
      }, `${node.id} to be removed`)
    }
    const copied = (node: NodeSpec): Promise<boolean> =>
      eventually(() => opened.runtime.keepCopy(node, '0.8.0'), `a copy of ${node.id}`)

    test('a node that was never started is absent and has no address, and nothing but a start has an effect', async () => {
      const node = specs.add()
      const { runtime } = opened
      expect(await runtime.observe(node)).toEqual({ observed: { phase: 'absent' } })
      expect(await runtime.address(node.id)).toBeUndefined()
      for (const call of [runtime.stop, runtime.kill, runtime.removeCopies, runtime.remove]) await call.call(runtime, node)
      await runtime.restoreCopy(node, '0.7.0')
      expect((await runtime.observe(node)).observed.phase).toBe('absent')
    })

    test('a started node has the right identity, version and run, and can be reached at its address', async () => {
      const node = await running()
      const { observed, process } = await opened.runtime.observe(node)
      expect(process).toEqual({ run: 1, version: '0.8.0' })
      const lightningId = lightningIdOf(materialOf(node.id).seed, 'regtest')
      expect(observed).toMatchObject({ phase: 'running', nodeId: lightningId, version: expect.stringMatching(/^0\.8\.0/) })
      const address = await opened.runtime.address(node.id)
      if (!address) throw new Error('no address')
      const answer = await getInfo(address, materialOf(node.id).restrictedPassword, 60_000)
      expect(answer).toMatchObject({ answer: 'info', info: { nodeId: lightningId } })
    })

    test('C17: starting a node that already runs does nothing', async () => {
      const node = await running()
      const before = await opened.runtime.address(node.id)
      for (let time = 0; time < 3; time++) await opened.runtime.start(wanting(node, { run: 2 }), materialOf(node.id), mine)
      expect((await opened.runtime.observe(node)).process).toEqual({ run: 1, version: '0.8.0' })
      expect((await opened.runtime.address(node.id))?.port).toBe(before?.port)
    })

    test('without the lease, nothing is started', async () => {
      const node = specs.add()
      await opened.runtime.start(node, materialOf(node.id), async () => false)
      expect((await opened.runtime.observe(node)).observed.phase).toBe('absent')
    })

    test('a version that is not offered cannot be started, and the owner sees the reason', async () => {
      const node = wanting(specs.add(), { version: '7.7.7' })
      await expect(opened.runtime.start(node, materialOf(node.id), mine)).rejects.toThrow(CannotStart)
      await expect(opened.runtime.start(node, materialOf(node.id), mine)).rejects.toThrow(/7\.7\.7 is not in the catalog/)
    })

    test('a node is never started on its data with a different seed', async () => {
      const node = await running()
      await stopped(node)
      await expect(opened.runtime.start(node, newMaterial(), mine)).rejects.toThrow(CannotStart)
    })

    test('a stopped node refuses connections, and can be stopped again', async () => {
      const node = await running()
      await stopped(node)
      await opened.runtime.stop(node)
      const address = await opened.runtime.address(node.id)
      if (address) expect(await getInfo(address, materialOf(node.id).restrictedPassword, 60_000)).toEqual({ answer: 'refused' })
    })

    test('a restarted service finds running nodes, and does not start them twice', async () => {
      const node = await running()
      const runtime = opened.reopen()
      // Simulates a crash after the node was started and before the start was recorded.
      const unrecorded = { ...node, history: NEVER_STARTED }
      const seen = await becomes(unrecorded, 'running', runtime)
      expect(seen.process).toEqual({ run: 1, version: '0.8.0' })
      await runtime.start(unrecorded, materialOf(node.id), mine)
      expect((await runtime.address(node.id))?.port).toBe((await opened.runtime.address(node.id))?.port)
    })

    test('an exited node is reported repeatedly until the report succeeds', async () => {
      const node = await running()
      const reports: string[] = []
      const end = opened.runtime.watch(async (nodeId) => {
        reports.push(nodeId)
        if (reports.length < 3) throw new Error('the store is down')
      })
      await opened.crash(node.id)
      await eventually(() => reports.length === 3, 'the third report')
      end()
      expect(reports).toEqual([node.id, node.id, node.id])
      const { observed, restarts } = await opened.runtime.observe(node)
      // A platform that restarts the process at once (Kubernetes) reports a restart instead of the exit.
      if (restarts) expect(restarts.count).toBe(1)
      else expect(observed).toMatchObject({ phase: 'exited', isUntouched: false })
    })

    test('a node whose data is missing is observed as data_lost', async () => {
      const node = await running()
      await stopped(node)
      await removed(node)
      expect((await opened.runtime.observe(node)).observed.phase).toBe('data_lost')
    })

    test('C25: a copy can be kept and restored repeatedly; an update that never ran has left the data untouched', async () => {
      const node = await running()
      await stopped(node)
      const { runtime } = opened
      for (let time = 0; time < 2; time++) await copied(node)
      const next = wanting(node, { version: '1.0.0', run: 2 })
      await runtime.start(next, materialOf(node.id), mine)
      const updating = started(next, { previousVersion: '0.8.0' })
      expect((await ended(updating)).observed).toMatchObject({ isUntouched: true })
      // The reconciler may call `stop` for a node that has exited since it was observed. That must not count as use of the data.
      await runtime.stop(updating)
      expect((await runtime.observe(updating)).observed).toMatchObject({ phase: 'exited', isUntouched: true })
      for (let time = 0; time < 2; time++) await runtime.restoreCopy(node, '0.8.0')
      await running(wanting(node, { run: 3 }))
    })

    test('C25: an update that ran has not left the data untouched, and the data of a running node can be neither restored nor removed', async () => {
      const node = await running()
      await stopped(node)
      const { runtime } = opened
      await copied(node)
      const next = wanting(node, { version: '0.9.0', run: 2 })
      await runtime.start(next, materialOf(node.id), mine)
      const updating = started(next, { previousVersion: '0.8.0' })
      await becomes(updating, 'running')
      await expect(runtime.restoreCopy(updating, '0.8.0')).rejects.toThrow()
      await expect(runtime.remove(updating)).rejects.toThrow()
      await opened.crash(node.id)
      expect((await ended(updating)).observed).toMatchObject({ isUntouched: false })
    })

    test('C25: an update never goes back to a copy that is older than the data', async () => {
      const node = await running()
      await stopped(node)
      await copied(node)
      const again = await running(wanting(node, { run: 2 }))
      const address = await opened.runtime.address(node.id)
      if (!address) throw new Error('no address')
      const invoice = { amountSat: 21, description: 'changes the data', externalId: 'x', expirySeconds: 600 }
      expect(await createInvoice(address, materialOf(node.id).password, invoice, 60_000)).toMatchObject({ answer: 'invoice' })
      await stopped(again)
      const hoursLater = { ...again, history: { ...again.history, startedAtMs: null, lastStartedAtMs: Date.now() + 7_200_000 } }
      // Where only the new version's process proves that it never ran, an old copy is refused before the update begins.
      const refusal = await opened.runtime.keepCopy(hoursLater, '0.8.0').then(
        () => undefined,
        (error: unknown) => error,
      )
      if (refusal !== undefined) {
        expect(refusal).toBeInstanceOf(CannotStart)
        expect(String(refusal)).toContain('older than the data')
        return
      }
      const next = wanting(again, { version: '1.0.0', run: 3 })
      await opened.runtime.start(next, materialOf(node.id), mine)
      expect((await ended(started(next, { previousVersion: '0.8.0' }))).observed).toMatchObject({ isUntouched: false })
    })

    test('removing one node leaves the others as they are', async () => {
      const [one, other] = [await running(), await running()]
      await stopped(one)
      for (let time = 0; time < 2; time++) await removed(one)
      expect(await opened.runtime.address(one.id)).toBeUndefined()
      expect((await opened.runtime.observe(other)).observed.phase).toBe('running')
    })
  })
}
