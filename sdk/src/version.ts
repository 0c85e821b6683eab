/** As in package.json, which cannot be imported everywhere this runs. */
export const VERSION = '0.1.0'
