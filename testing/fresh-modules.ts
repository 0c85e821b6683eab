import { vi } from 'vitest'

/**
 * Test files share a process, so that packages are loaded only once. Our own modules are evaluated again for each file, because they hold
 * the file's servers, directories and hooks.
 */
vi.resetModules()
