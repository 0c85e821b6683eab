import { vi } from 'vitest'

/**
 * Test files share a process, so that packages are loaded once. Our own modules are evaluated again for each file: they hold its servers,
 * directories and hooks.
 */
vi.resetModules()
