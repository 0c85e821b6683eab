import type { Config } from '../config.ts'
import { adopt } from './adopt.ts'
import { backUp } from './backup.ts'
import { migrateDatabase } from './migrate.ts'
import { release } from './release.ts'
import { restore } from './restore.ts'

export type Command = (config: Config, args: string[]) => Promise<void>

/** What the program can do instead of running the service. */
export const COMMANDS: Record<string, Command> = { migrate: migrateDatabase, backup: backUp, restore, adopt, release }
