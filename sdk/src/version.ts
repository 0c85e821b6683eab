/** The version in package.json, which cannot be imported in every runtime. */
export const VERSION = '0.1.0'
