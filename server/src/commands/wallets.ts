import type { Config } from '../config.ts'
import type { Database } from '../store/db.ts'
import type { WalletHome } from './wallet-home.ts'

/** Holds the lock of this installation's moves until `work` ends. */
export async function withWalletHome<T>(config: Config, sql: Database, work: (home: WalletHome) => Promise<T>): Promise<T> {
  const home = config.kubernetes
    ? await (await import('./wallets-on-kubernetes.ts')).walletsOnKubernetes(config, config.kubernetes, sql)
    : (await import('./wallets-on-machine.ts')).walletsOnMachine(config, sql)
  try {
    return await home.withLock(() => work(home))
  } finally {
    home.close()
  }
}
