import { COMMANDS } from './commands/commands.ts'
import { asksForHelp, HELP } from './commands/help.ts'
import { readConfig } from './config.ts'
import { isSupportedPlatform } from './platform/linux.ts'
import { StartFault } from './platform/start-fault.ts'
import { startReaper, startService } from './service.ts'

async function main([name, ...args]: string[]): Promise<void> {
  if (!isSupportedPlatform()) throw new StartFault(78, 'Boltyard requires Linux: it depends on /proc and flock')
  if (name === undefined) return serve()
  if (name === 'serve-volume') return (await import('./commands/serve-volume.ts')).serveVolume(args, process.env.PHOENIX_DATADIR)
  if (asksForHelp([name, ...args])) return void process.stdout.write(HELP)
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined
  if (!command)
    throw new StartFault(
      78,
      `unknown command; run without a command to start the service, or use one of: ${Object.keys(COMMANDS).join(', ')}`,
    )
  await command(readConfig(process.env), args)
}

async function serve(): Promise<void> {
  const config = readConfig(process.env)
  const service = config.role === 'reaper' ? await startReaper(config) : await startService(config)
  const stop = async (): Promise<void> => {
    await service.close()
    process.exit(0)
  }
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => void stop().catch(die))
  if ('url' in service) process.stdout.write(`boltyard ready ${service.url}\n`)
}

function die(error: unknown): never {
  const message = error instanceof Error ? error.message : String(error)
  process.stderr.write(`${error instanceof StartFault ? message : `fatal: ${message}`}\n`)
  process.exit(error instanceof StartFault ? error.exitCode : 1)
}

main(process.argv.slice(2)).catch(die)
