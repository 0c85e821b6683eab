import { storedChoice } from './stored-choice.ts'

export type Unit = 'sat' | 'btc'

const unit = storedChoice<Unit>('boltyard-unit', ['sat', 'btc'])

/** In which unit this browser shows amounts. It is a matter of display only: amounts are always entered in sat. */
export const currentUnit = unit.current
export const setUnit = unit.set
export const useUnit = unit.use
