/** The parts of Node's modules that we use. Declared here, so that users do not have to install Node's types. */
export type Fs = {
  promises: {
    open(path: string, flags: string, mode?: number): Promise<Handle>
    mkdir(path: string, options: { recursive: true; mode: number }): Promise<unknown>
    readFile(path: string, encoding: 'utf8'): Promise<string>
    readdir(path: string): Promise<string[]>
    readlink(path: string): Promise<string>
    lstat(path: string): Promise<{ isDirectory(): boolean; uid: number; mode: number }>
    rename(from: string, to: string): Promise<void>
    link(from: string, to: string): Promise<void>
    rm(path: string, options: { force: true }): Promise<void>
  }
}
type Handle = { writeFile(text: string): Promise<void>; sync(): Promise<void>; close(): Promise<void> }
type Path = { join(...parts: string[]): string; resolve(path: string): string }
type Os = { homedir(): string; hostname(): string }
type NodeCrypto = {
  hash(name: 'sha256', data: Uint8Array, form: 'hex'): string
  getCurves(): string[]
  ECDH: { convertKey(key: string, curve: string, from: 'hex', to: 'hex', form: 'compressed'): unknown }
  createPublicKey(options: { key: Uint8Array; format: 'der'; type: 'spki' }): object
  verify(digest: 'sha256', message: Uint8Array, key: { key: object; dsaEncoding: 'ieee-p1363' }, signature: Uint8Array): boolean
}
type Modules = { 'node:fs': Fs; 'node:path': Path; 'node:os': Os; 'node:crypto': NodeCrypto }
export type Process = {
  pid: number
  platform: string
  env: Record<string, string | undefined>
  release?: { name?: string }
  getuid?: () => number
  kill(pid: number, signal: 0): unknown
  getBuiltinModule?: (name: string) => unknown
}

/** Undefined where there is none, for example in a browser. */
export const { process: nodeProcess } = globalThis as { process?: Process }

/** Cloudflare's Workers have Node's modules, but their files vanish with the request. */
export const hasLastingFiles = (): boolean =>
  nodeProcess?.release?.name === 'node' &&
  (globalThis as { navigator?: { userAgent?: string } }).navigator?.userAgent !== 'Cloudflare-Workers'

/** Not imported statically, because bundlers for Workers and browsers reject that. */
export const builtin = <N extends keyof Modules>(name: N): Modules[N] | undefined =>
  nodeProcess?.getBuiltinModule?.(name) as Modules[N] | undefined

export const codeOf = (error: unknown): unknown => (error as { code?: unknown } | null)?.code
