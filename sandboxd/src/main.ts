#!/usr/bin/env node
import { setFlagsFromString } from 'node:v8'
import { runNode } from './daemon.ts'
import { runHub } from './hub/daemon.ts'
import { helpText, VERSION } from './options.ts'
import { StartFault } from './start-fault.ts'

async function main(args: string[]): Promise<void> {
  if (args[0] === 'hub') return runHub(args.slice(1))
  if (args.includes('--help') || args.includes('-h')) {
    process.stdout.write(helpText())
  } else if (args.includes('--version') || args.includes('-v')) {
    process.stdout.write(`sandboxd version ${VERSION}\n`)
  } else await runNode(args, process.env)
}

/** Prints one line that says what is wrong, without a stack trace. */
function die(error: unknown): never {
  process.stderr.write(
    `${error instanceof StartFault ? '' : 'fatal: '}${error instanceof Error ? error.message : String(error)}\n`,
  )
  process.exit(error instanceof StartFault ? error.exitCode : 1)
}

// Signing creates much short-lived garbage, and V8 would grow its young generation to 48 MB for it, a third of a node's memory.
setFlagsFromString('--semi-space-growth-factor=1')
process.on('uncaughtException', die)
process.on('unhandledRejection', die)
main(process.argv.slice(2)).catch(die)
