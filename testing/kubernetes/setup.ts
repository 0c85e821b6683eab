import type { TestProject } from 'vitest/node'
import { startPlane, whyNoPlane } from './plane.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** The path of the administrator's kubeconfig; empty if there is no control plane. */
    kubeconfig: string
  }
}

/** One control plane for all test files. */
export default function setup(project: TestProject): (() => void) | undefined {
  const reason = whyNoPlane()
  if (reason === undefined) {
    const { kubeconfig, stop } = startPlane()
    project.provide('kubeconfig', kubeconfig)
    return stop
  }
  if (process.env.CI === 'true') throw new Error(`the Kubernetes tests cannot run: ${reason}`)
  process.stderr.write(`\n*** SKIPPED: all Kubernetes tests, because ${reason} ***\n\n`)
  project.provide('kubeconfig', '')
  return undefined
}
