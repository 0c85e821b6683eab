import { builtin, codeOf, nodeProcess } from './node.ts'

/**
 * Which process holds a lock. Its `pid` is only valid on its `machine`; `startedAt` distinguishes it from a later process with
 * the same pid.
 */
export type Owner = { token: string; machine?: string | undefined; pid?: number | undefined; startedAt?: string | undefined }

let machine: Promise<string | undefined> | undefined

export async function thisProcess(): Promise<Owner> {
  machine ??= thisMachine()
  const token = crypto.randomUUID()
  if (!nodeProcess || (await machine) === undefined) return { token }
  return { token, machine: await machine, pid: nodeProcess.pid, startedAt: await startOf(nodeProcess.pid) }
}

/** Undefined if it cannot be known from here, because the process runs on another machine or in another container. */
export async function isRunning({ machine: theirs, pid, startedAt }: Owner): Promise<boolean | undefined> {
  machine ??= thisMachine()
  if (pid === undefined || theirs === undefined || theirs !== (await machine) || !nodeProcess) return undefined
  try {
    nodeProcess.kill(pid, 0)
  } catch (error) {
    if (codeOf(error) === 'ESRCH') return false
    if (codeOf(error) !== 'EPERM') return undefined
  }
  const now = await startOf(pid)
  // Without start times, this may be another process with the same pid.
  return startedAt === undefined || now === undefined ? undefined : now === startedAt
}

/** Process ids are unique in one PID namespace of one boot. A host name is not enough, because containers may share it. */
async function thisMachine(): Promise<string | undefined> {
  const fs = builtin('node:fs')?.promises
  if (!fs) return undefined
  try {
    const boot = await fs.readFile('/proc/sys/kernel/random/boot_id', 'utf8')
    return `${boot.trim()} ${await fs.readlink('/proc/self/ns/pid')}`
  } catch {
    return builtin('node:os')?.hostname()
  }
}

/** In clock ticks since the boot. Undefined without /proc. */
async function startOf(pid: number): Promise<string | undefined> {
  try {
    const stat = await builtin('node:fs')?.promises.readFile(`/proc/${pid}/stat`, 'utf8')
    // The second field is the program's name, which may contain blanks and brackets.
    return stat?.slice(stat.lastIndexOf(')') + 2).split(' ')[19]
  } catch {
    return undefined
  }
}
