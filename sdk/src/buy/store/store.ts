/**
 * Where purchases, locks and spendings are kept. Implement it to keep them elsewhere than in files, for example in Redis. Names consist of
 * lower-case letters, digits, dots and hyphens. The texts contain credentials, so keep them secret.
 */
export interface PurchaseStore {
  get(name: string): Promise<string | undefined>
  /**
   * Replaces the text as a whole. Must be durable when it resolves: money is spent after that. If it is given, call `mayReplace` as late as you
   * can, and reject with what it throws: the process may have been suspended, and another one may have written the entry meanwhile.
   */
  set(name: string, text: string, mayReplace?: () => Promise<void>): Promise<void>
  /** Creates the entry, as durably. False if it exists: of any number of concurrent callers, exactly one gets true. */
  add(name: string, text: string): Promise<boolean>
  /** Does nothing if there is no such entry. */
  delete(name: string): Promise<void>
  /** The names that begin with the prefix, in any order. */
  list(prefix: string): Promise<string[]>
}

/** Forgets everything when the process ends, so a payment that was interrupted is lost. For tests, and where there are no files. */
export function memoryStore(): PurchaseStore {
  const entries = new Map<string, string>()
  return {
    get: async (name) => entries.get(name),
    set: async (name, text, mayReplace) => {
      await mayReplace?.()
      entries.set(name, text)
    },
    add: async (name, text) => {
      if (entries.has(name)) return false
      entries.set(name, text)
      return true
    },
    delete: async (name) => void entries.delete(name),
    list: async (prefix) => [...entries.keys()].filter((name) => name.startsWith(prefix)),
  }
}
