import { parse } from './arguments.ts'
import { Call } from './call.ts'
import { COMMANDS } from './commands.ts'
import { EXIT, Failure, usage } from './failure.ts'
import { isNullDevice, reasonOf } from './files.ts'
import { helpOn } from './help.ts'
import { VERSION } from './version.ts'

/** Entry point of `boltyard`. */

// In `boltyard nodes list | head -1` the reader closes the pipe early, which is not an error.
process.stdout.on('error', async (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE' && !call?.ifUnread) process.exit(EXIT.ok)
  const why = `The output could not be written: ${error.code === 'EPIPE' ? 'the reader closed the pipe' : reasonOf(error)}.`
  const { report } = await import('./report.ts')
  process.exit(await report(new Failure('other', 'output_failed', why, { next: call?.ifUnread ?? [] }), call))
})

let call: Call | undefined
let isInterrupted = false
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    const number = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 }[signal]
    // A second signal exits immediately.
    if (isInterrupted || !call) process.exit(number)
    isInterrupted = true
    process.exitCode = number
    call.abort(new Failure('interrupted', 'interrupted', 'Interrupted.'))
  })
}

const code = await main()
// Wait until all output has been written. If that fails, the error handler above reports it and exits.
const failure = await new Promise((resolve) => process.stdout.write('', resolve))
if (!failure) process.exit(code)

async function main(): Promise<number> {
  try {
    const asked = parse(process.argv.slice(2), COMMANDS)
    if (asked.what === 'version') {
      process.stdout.write(`${VERSION}\n`)
      return EXIT.ok
    }
    if (asked.what === 'help') {
      if (asked.isMistake && !process.stderr.isTTY)
        throw usage('No command was given.', `boltyard ${asked.topic} --help`.replace('  ', ' '))
      const stream = asked.isMistake ? process.stderr : process.stdout
      stream.write(helpOn(asked.topic, COMMANDS))
      return asked.isMistake ? EXIT.usage : EXIT.ok
    }
    call = new Call(asked)
    const run = await asked.command.load()
    await run(call)
    call.spinner.stop()
    // Node replaces a closed standard output with /dev/null, so this also covers `>&-`.
    if (call.ifUnread && isNullDevice(1))
      throw new Failure('other', 'output_failed', 'The output was discarded.', { next: call.ifUnread })
    return EXIT.ok
  } catch (error) {
    const { report } = await import('./report.ts')
    const code = await report(error, call)
    return code === EXIT.interrupted ? Number(process.exitCode ?? code) : code
  }
}
