/** What is kept of a node's life. The state machine in `nodes/node.ts` decides about it; only types are stated here. */

export type Status = 'provisioning' | 'ready' | 'stopped' | 'failed'
export type OperationKind = 'start' | 'stop' | 'restart' | 'update' | 'delete'
export type DesiredState = 'running' | 'stopped' | 'deleted'

/** What deadlines and crash counts need. All times are the database's, in milliseconds. */
export type History = {
  /** When somebody or something last asked it to come up; deadlines count from here. */
  wantedSinceMs: number
  /** Unasked exits of the last ten minutes. */
  exitsMs: number[]
  /** When the process that is there now was started, and as which run and version. */
  startedAtMs: number | null
  run: number
  version: string | null
  /** A process of that version has, or may have, connected to its peer. Then its data must never go back. */
  reached: boolean
  /** What ran before an update; its data was copied. */
  previousVersion: string | null
}
