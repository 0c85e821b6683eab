/**
 * Stores purchases, locks and spent amounts. Implement it to use something other than files, for example Redis. Names consist of
 * lower-case letters, digits, dots and hyphens. The texts contain credentials, so keep them secret.
 */
export interface PurchaseStore {
  get(name: string): Promise<string | undefined>
  /**
   * Replaces the whole text. The change must be durable when the promise resolves, because money is spent after that. If
   * `mayReplace` is given, call it as late as possible, and if it throws, write nothing and reject with its error: another
   * process may have written the entry while this one was suspended.
   */
  set(name: string, text: string, mayReplace?: () => Promise<void>): Promise<void>
  /**
   * Creates the entry, as durably as `set`. Returns false if it exists: of any number of concurrent callers, exactly one gets
   * true.
   */
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
