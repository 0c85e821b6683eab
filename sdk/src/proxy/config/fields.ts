import { isObject } from '../../../../protocol/src/bytes.ts'
import type { ConfigMistake } from './config.ts'

/** What a setting may be: one value, or a group of settings. */
export type Field = ValueField | { fields: Fields } | { each: Fields; isRequired?: true }
type ValueField = { allowed: string; is: (value: unknown) => boolean; isRequired?: true }
export type Fields = Readonly<Record<string, Field>>
type Path = readonly (string | number)[]

/** Compares settings with what they may be, and notes every mistake. A message never repeats a value, because it may be a secret. */
export function checkFields(value: unknown, fields: Fields, path: Path, mistakes: ConfigMistake[]): void {
  if (!isObject(value)) return void mistakes.push({ path, message: 'must be a group of settings.' })
  const known = Object.keys(fields)
  for (const name of Object.keys(value).filter((one) => !known.includes(one)))
    mistakes.push({ path: [...path, name], message: `is not a setting. Allowed: ${known.join(', ')}.`, known })
  for (const [name, field] of Object.entries(fields)) {
    const isMissing = value[name] === undefined
    if (!isMissing) checkField(value[name], field, [...path, name], mistakes)
    else if ('isRequired' in field) mistakes.push({ path: [...path, name], message: `is missing. ${messageOf(field)}` })
  }
}

function checkField(value: unknown, field: Field, path: Path, mistakes: ConfigMistake[]): void {
  if ('fields' in field) return checkFields(value, field.fields, path, mistakes)
  if ('is' in field) return field.is(value) ? undefined : void mistakes.push({ path, message: messageOf(field) })
  if (!Array.isArray(value) || value.length === 0) return void mistakes.push({ path, message: messageOf(field) })
  for (const [index, one] of value.entries()) checkFields(one, field.each, [...path, index], mistakes)
}

function messageOf(field: Field): string {
  return 'allowed' in field ? `It must be ${field.allowed}.` : 'It must be a list with at least one entry.'
}

export const flag: ValueField = { allowed: 'true or false', is: (value) => typeof value === 'boolean' }

export const text = (most: number): ValueField => ({
  allowed: `text of 1 to ${most} characters`,
  is: (value) => typeof value === 'string' && value !== '' && [...value].length <= most,
})

export const whole = (least: number, most: number, what = ''): ValueField => ({
  allowed: `a whole number from ${least} to ${most}${what}`,
  is: (value) => Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most,
})

export const oneOf = (...choices: string[]): ValueField => ({
  allowed: choices.join(' or '),
  is: (value) => choices.includes(value as string),
})

export const listOf = (allowed: string, is: (value: unknown) => boolean): ValueField => ({
  allowed,
  is: (value) => Array.isArray(value) && value.every(is),
})

export const url = (allowed: string, is: (url: URL) => boolean): ValueField => ({
  allowed,
  is: (value) => {
    if (typeof value !== 'string' || !URL.canParse(value)) return false
    const { protocol, username, password, hash } = new URL(value)
    return /^https?:$/.test(protocol) && !username && !password && !hash && is(new URL(value))
  },
})
