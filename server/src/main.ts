import { readConfig } from './config.ts'
import { isSupportedPlatform } from './platform/linux.ts'
import { StartFault } from './platform/start-fault.ts'
import { startService } from './service.ts'

async function main(): Promise<void> {
  if (!isSupportedPlatform()) throw new StartFault(78, 'Boltyard requires Linux: it depends on /proc and flock')
  const service = await startService(readConfig(process.env))
  const stop = async (): Promise<void> => {
    await service.close()
    process.exit(0)
  }
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => void stop().catch(die))
  process.stdout.write(`boltyard ready ${service.url}\n`)
}

function die(error: unknown): never {
  const message = error instanceof Error ? error.message : String(error)
  process.stderr.write(`${error instanceof StartFault ? message : `fatal: ${message}`}\n`)
  process.exit(error instanceof StartFault ? error.exitCode : 1)
}

main().catch(die)
