import { describe } from 'vitest'
import { podName } from '../../src/runtimes/kubernetes/objects.ts'
import { hasNoPlane, newPlace, openCluster, openRuntime, type TestRuntime } from '../support/kubernetes.ts'
import { describeRuntime } from '../support/runtime-contract.ts'

describe.skipIf(hasNoPlane())('on a real control plane', () => {
  describeRuntime('Kubernetes', async (materialOf) => {
    const cluster = await openCluster()
    const place = newPlace(cluster)
    const opened: TestRuntime[] = []
    const reopen = (): TestRuntime['runtime'] => {
      const one = openRuntime({ cluster, place, materialOf })
      opened.push(one)
      return one.runtime
    }
    return {
      runtime: reopen(),
      reopen,
      crash: (nodeId) => cluster.kubelet.crash(podName(nodeId)),
      close: async () => {
        for (const { close } of opened) await close()
        await cluster.close()
      },
    }
  })
})
