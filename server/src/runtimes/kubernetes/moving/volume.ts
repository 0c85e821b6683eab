import { createReadStream, createWriteStream } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { ReadableStream } from 'node:stream/web'
import { setTimeout as pause } from 'node:timers/promises'
import { TryAgain } from '../../../nodes/runtime.ts'
import { crashpoint } from '../../../platform/crashpoint.ts'
import { syncDirectory } from '../../../platform/data-dir.ts'
import type { NodeObjects } from '../node-objects.ts'
import { PATHS, PORT } from '../objects.ts'
import { isRunning, isTerminating, whyInEvents, whyWaiting } from '../pod-state.ts'
import type { Event, Pod, StatefulSet, Stored } from '../types.ts'
import { type VolumeLaunch, volumeName, volumeSetOf, volumeTemplateOf } from './volume-objects.ts'
import { fileAt, type VolumeFile } from './volume-server.ts'

const POLL_MS = 300
/** A machine may have to pull the image first. */
const OPEN_TIMEOUT_MS = 300_000
const CLOSE_TIMEOUT_MS = 60_000
/** A volume that sends nothing for this long is gone. */
const ANSWER_TIMEOUT_MS = 600_000

/** Runs a program beside a node's volume while `work` moves files. Nothing has the volume open before and after. */
export async function withVolume<T>(
  objects: NodeObjects,
  nodeId: string,
  launch: VolumeLaunch & { password: string },
  work: (volume: Volume) => Promise<T>,
): Promise<T> {
  // An interrupted call has left its program behind.
  await closeVolume(objects, nodeId)
  try {
    const volume = await openVolume(objects, nodeId, launch)
    crashpoint('volume: open')
    return await work(volume)
  } finally {
    await closeVolume(objects, nodeId)
  }
}

const setPath = ({ place }: NodeObjects, nodeId: string): string => `${PATHS.statefulSets(place.namespace)}/${volumeName(nodeId)}`
const podPath = ({ place }: NodeObjects, nodeId: string): string => `${PATHS.pods(place.namespace)}/${volumeName(nodeId)}-0`

async function openVolume(
  objects: NodeObjects,
  nodeId: string,
  { password, ...launch }: VolumeLaunch & { password: string },
): Promise<Volume> {
  const { client, place } = objects
  let reason = 'its pod does not start'
  for (const deadline = performance.now() + OPEN_TIMEOUT_MS; ; await pause(POLL_MS)) {
    const found = await orAgain(async () => {
      const set = await client.get<StatefulSet>(setPath(objects, nodeId))
      if (!set) return void (await client.create(PATHS.statefulSets(place.namespace), volumeSetOf(place, nodeId, launch)))
      if (set.spec.replicas === 0) {
        const template = volumeTemplateOf(nodeId, launch)
        await client.patch(setPath(objects, nodeId), set, [
          { op: 'replace', path: '/spec/template', value: template },
          { op: 'replace', path: '/spec/replicas', value: 1 },
        ])
        return
      }
      const pod = await client.get<Pod>(podPath(objects, nodeId))
      reason = (await whyNot(objects, nodeId, pod)) ?? reason
      const isOurs = pod?.metadata.ownerReferences?.[0]?.uid === set.metadata.uid
      if (!pod || !isOurs || isTerminating(pod) || !isRunning(pod) || !pod.status?.podIP) return
      const volume = new Volume(`http://${hostIn(pod.status.podIP)}:${PORT}`, password)
      return (await volume.isListening()) ? volume : undefined
    })
    if (found) return found
    if (performance.now() > deadline) throw new Error(`the volume of ${nodeId} cannot be opened: ${reason}`)
  }
}

async function whyNot({ client, place }: NodeObjects, nodeId: string, pod: Stored<Pod> | undefined): Promise<string | undefined> {
  if (pod && isRunning(pod)) return undefined
  const waiting = pod && whyWaiting(pod)
  if (waiting !== undefined) return waiting
  const about = pod ? `${volumeName(nodeId)}-0` : volumeName(nodeId)
  const { items } = await client.list<Event>(PATHS.events(place.namespace), { fieldSelector: `involvedObject.name=${about}` })
  return whyInEvents(items)
}

const hostIn = (address: string): string => (address.includes(':') ? `[${address}]` : address)

/** Returns once nothing has the volume open. */
export async function closeVolume(objects: NodeObjects, nodeId: string): Promise<void> {
  const { client } = objects
  for (const deadline = performance.now() + CLOSE_TIMEOUT_MS; ; await pause(POLL_MS)) {
    const isClosed = await orAgain(async () => {
      const set = await client.get<StatefulSet>(setPath(objects, nodeId))
      if (set && set.spec.replicas !== 0)
        await client.patch(setPath(objects, nodeId), set, [{ op: 'replace', path: '/spec/replicas', value: 0 }])
      // Read after the StatefulSet: if that was at 0 replicas, no pod follows.
      return (await client.get<Pod>(podPath(objects, nodeId))) === undefined
    })
    if (isClosed) return
    if (performance.now() > deadline) throw new Error(`the volume of ${nodeId} is still in use by ${volumeName(nodeId)}-0`)
  }
}

/** Of a node that was adopted or released, once its data is removed. */
export async function removeVolumeSet(objects: NodeObjects, nodeId: string): Promise<void> {
  const { client } = objects
  const set = await client.get<StatefulSet>(setPath(objects, nodeId))
  if (!set) return
  if (set.spec.replicas !== 0 || (await client.get<Pod>(podPath(objects, nodeId))))
    throw new Error(`the volume of ${nodeId} is being moved`)
  await client.delete(set, setPath(objects, nodeId))
}

/** Undefined if the API server could not say, or if the object has changed since it was read. */
async function orAgain<T>(work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof TryAgain) return undefined
    throw error
  }
}

/** The files of a volume, over the network. */
export class Volume {
  readonly #url: string
  readonly #password: string

  constructor(url: string, password: string) {
    this.#url = url
    this.#password = password
  }

  async isListening(): Promise<boolean> {
    try {
      await this.files()
      return true
    } catch (error) {
      // Nothing listens yet. Anything else, such as a refused password, does not get better.
      if (error instanceof TypeError) return false
      throw error
    }
  }

  async files(): Promise<VolumeFile[]> {
    return (await (await this.#call('GET', '')).json()) as VolumeFile[]
  }

  /** Afterwards the volume has these files of the directory and no others, as it has read them back. */
  async replaceFiles(directory: string, names: string[]): Promise<VolumeFile[]> {
    await this.#call('DELETE', '')
    for (const name of names) {
      await this.#call('PUT', name, createReadStream(join(directory, name)))
      crashpoint('volume: a file is there')
    }
    return this.files()
  }

  /** Copies all files into a new directory, and compares them with what the volume has. */
  async copyTo(directory: string): Promise<void> {
    await mkdir(directory, { mode: 0o700 })
    const files = await this.files()
    if (!files.some(({ name }) => name.endsWith('.db'))) throw new Error('the volume has no channel database')
    for (const file of files) {
      const path = join(directory, file.name)
      const { body } = await this.#call('GET', file.name)
      if (!body) throw new Error(`the volume sends nothing for ${file.name}`)
      const target = createWriteStream(path, { mode: 0o600, flags: 'wx', flush: true })
      await pipeline(Readable.fromWeb(body as ReadableStream), target)
      if ((await fileAt(path, file.name)).sha256 !== file.sha256) throw new Error(`${file.name} was damaged on its way`)
    }
    syncDirectory(directory)
  }

  async #call(method: string, name: string, content?: Readable): Promise<Response> {
    const response = await fetch(`${this.#url}/${name}`, {
      method,
      headers: { authorization: `Bearer ${this.#password}` },
      signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS),
      ...(content && { body: Readable.toWeb(content), duplex: 'half' }),
    } as RequestInit)
    if (!response.ok) throw new Error(`the volume refused ${method} with status ${response.status}`)
    return response
  }
}
