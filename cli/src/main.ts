import { parse } from './arguments.ts'
import { Call } from './call.ts'
import { COMMANDS } from './commands.ts'
import { EXIT, Failure, usage } from './failure.ts'
import { isNullDevice, reasonOf } from './files.ts'
import { helpOn } from './help.ts'
import { VERSION } from './version.ts'

/** `boltyard`. Data on stdout, all else on stderr; the exit code says what kind of end it was. */

// `boltyard nodes list | head -1`: who has read enough closes the pipe, and that is no fault.
process.stdout.on('error', async (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE' && !call?.ifUnread) process.exit(EXIT.ok)
  const why = `The output could not be written: ${error.code === 'EPIPE' ? 'nobody reads it' : reasonOf(error)}.`
  const { report } = await import('./report.ts')
  process.exit(await report(new Failure('other', 'output_failed', why, { next: call?.ifUnread ?? [] }), call))
})

let call: Call | undefined
let isInterrupted = false
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    const number = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 }[signal]
    // The second time somebody means it.
    if (isInterrupted || !call) process.exit(number)
    isInterrupted = true
    process.exitCode = number
    call.abort(new Failure('interrupted', 'interrupted', 'Interrupted.'))
  })
}

const code = await main()
// Only then is it known that all of it was taken. If it was not, the handler above ends the program once it has said so.
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
        throw usage('Which command?', `boltyard ${asked.topic} --help`.replace('  ', ' '))
      const stream = asked.isMistake ? process.stderr : process.stdout
      stream.write(helpOn(asked.topic, COMMANDS))
      return asked.isMistake ? EXIT.usage : EXIT.ok
    }
    call = new Call(asked)
    const run = await asked.command.load()
    await run(call)
    call.spinner.stop()
    // Node opens /dev/null in place of a closed standard output, so this is also what `>&-` looks like.
    if (call.ifUnread && isNullDevice(1))
      throw new Failure('other', 'output_failed', 'The output was discarded.', { next: call.ifUnread })
    return EXIT.ok
  } catch (error) {
    const { report } = await import('./report.ts')
    const code = await report(error, call)
    return code === EXIT.interrupted ? Number(process.exitCode ?? code) : code
  }
}
