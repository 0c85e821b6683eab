import type { Config } from '../config.ts'
import { backUp } from './backup.ts'
import { migrateDatabase } from './migrate.ts'
import { restore } from './restore.ts'

export type Command = (config: Config, args: string[]) => Promise<void>

/** What the program can do instead of running the service. */
export const COMMANDS: Record<string, Command> = { migrate: migrateDatabase, backup: backUp, restore }
