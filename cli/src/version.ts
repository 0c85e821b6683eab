import manifest from '../package.json' with { type: 'json' }

export const VERSION = manifest.version
export const USER_AGENT = `boltyard-cli/${VERSION}`
