import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** The app reads answers by these types. Read as text, since the server imports no other room: what they say is what is checked. */
const SOURCE = readFileSync(fileURLToPath(new URL('../../../dashboard/src/api/types.ts', import.meta.url)), 'utf8')

type Check = (value: unknown) => string | undefined
type Fields = Map<string, { check: Check; isOptional: boolean }>
type Parsed = { check: Check; fields?: Fields }

const TOKENS = /\/\*[\s\S]*?\*\/|\/\/.*|'[^']*'|[A-Za-z_]\w*|\[\]|[{}()<>|&:;,?=]/g
const types = new Map<string, string[]>()
for (const [, name = '', body = ''] of SOURCE.matchAll(/export type (\w+) =([\s\S]*?)(?=\nexport |\n\/\*\*|$)/g))
  types.set(
    name,
    (body.match(TOKENS) ?? []).filter((token) => !token.startsWith('/')),
  )

/** Undefined: the value is of that type, with all of its fields and no other. Otherwise the first thing that is not. */
export function mismatch(typeName: string, value: unknown): string | undefined {
  return named(typeName).check(value)
}

export const namesOfTypes = [...types.keys()]

function named(name: string): Parsed {
  const tokens = types.get(name)
  if (!tokens) throw new Error(`the wire has no type ${name}`)
  return new Reader([...tokens]).union()
}

class Reader {
  readonly #tokens: string[]

  constructor(tokens: string[]) {
    this.#tokens = tokens
  }

  #takes(token: string): boolean {
    if (this.#tokens[0] !== token) return false
    this.#tokens.shift()
    return true
  }

  union(): Parsed {
    this.#takes('|')
    const first = this.#intersection()
    const all = [first]
    while (this.#takes('|')) all.push(this.#intersection())
    if (all.length === 1) return first
    const check: Check = (value) => {
      const faults = all.map((one) => one.check(value))
      return faults.includes(undefined) ? undefined : faults.join(' and ')
    }
    return { check }
  }

  #intersection(): Parsed {
    const all = [this.#list()]
    while (this.#takes('&')) all.push(this.#list())
    if (all.length === 1) return all[0] as Parsed
    return objectOf(new Map(all.flatMap(({ fields = new Map() }) => [...fields])))
  }

  #list(): Parsed {
    let element = this.#single()
    while (this.#takes('[]')) {
      const { check } = element
      element = {
        check: (value) => {
          if (!Array.isArray(value)) return `${JSON.stringify(value)} is no list`
          return value.map(check).find((fault) => fault !== undefined)
        },
      }
    }
    return element
  }

  #single(): Parsed {
    const token = this.#tokens.shift() ?? ''
    if (token === '(') {
      const inner = this.union()
      this.#takes(')')
      return inner
    }
    if (token === '{') return this.#object()
    if (token.startsWith("'")) return simple(token, (value) => value === token.slice(1, -1))
    if (token === 'null') return simple(token, (value) => value === null)
    if (token === 'unknown') return simple(token, () => true)
    // There is no fraction on the wire.
    if (token === 'number') return simple(token, Number.isSafeInteger)
    if (token === 'string' || token === 'boolean') return simple(token, (value) => typeof value === token)
    if (token === 'Record') {
      while (!this.#takes('>')) this.#tokens.shift()
      return simple('a record', (value) => typeof value === 'object' && value !== null && !Array.isArray(value))
    }
    return named(token)
  }

  #object(): Parsed {
    const fields: Fields = new Map()
    while (!this.#takes('}')) {
      const name = this.#tokens.shift() ?? ''
      const isOptional = this.#takes('?')
      this.#takes(':')
      fields.set(name, { check: this.union().check, isOptional })
      if (!this.#takes(';')) this.#takes(',')
    }
    return objectOf(fields)
  }
}

const simple = (name: string, is: (value: unknown) => boolean): Parsed => ({
  check: (value) => (is(value) ? undefined : `${JSON.stringify(value)} is not ${name}`),
})

function objectOf(fields: Fields): Parsed {
  const check: Check = (value) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return `${JSON.stringify(value)} is no object`
    const extra = Object.keys(value).find((name) => !fields.has(name))
    if (extra !== undefined) return `the field ${extra} is too many`
    for (const [name, { check: checkField, isOptional }] of fields) {
      if (!Object.hasOwn(value, name)) {
        if (isOptional) continue
        return `the field ${name} is missing`
      }
      const fault = checkField((value as Record<string, unknown>)[name])
      if (fault !== undefined) return `${name}: ${fault}`
    }
    return undefined
  }
  return { check, fields }
}
