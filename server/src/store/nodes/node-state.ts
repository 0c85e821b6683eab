/** The stored state of a node, types only. The state machine in `nodes/node.ts` decides how it changes. */

export type Status = 'provisioning' | 'ready' | 'stopped' | 'failed'
export type OperationKind = 'start' | 'stop' | 'restart' | 'update' | 'delete'
export type DesiredState = 'running' | 'stopped' | 'deleted'

/** For deadlines and crash counts. All times are in milliseconds, by the database's clock. */
export type History = {
  /** When the node was last asked to run, by a user or by the service; deadlines count from here. */
  wantedSinceMs: number
  /** Unexpected exits in the last ten minutes. */
  exitsMs: number[]
  /** When the current process was started, with its run and version. */
  startedAtMs: number | null
  /** When a process was last started. Unlike `startedAtMs`, kept when it ends. Absent if that was before this was recorded. */
  lastStartedAtMs?: number
  run: number
  version: string | null
  /** A process of this version has connected to its peer, or may have. Its data must never be rolled back. */
  reached: boolean
  /** The version before an update, whose data was copied. */
  previousVersion: string | null
  /** The restarts that are already counted in `exitsMs`. Absent if the platform does not restart processes itself. */
  restarts?: Restarts
}

/** How often the platform has restarted a process, and the object that this count belongs to, such as a pod: a new object starts at 0. */
export type Restarts = { of: string; count: number }
