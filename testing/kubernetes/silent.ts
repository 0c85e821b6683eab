import type { Logger } from '../../server/src/platform/log.ts'

const nothing = (): void => undefined

export const silent: Logger = { info: nothing, warn: nothing, error: nothing }
