import { escapeIdentifier } from 'pg'

/** The name of a table or column, quoted. */
export class Identifier {
  readonly text: string

  constructor(name: string) {
    this.text = escapeIdentifier(name)
  }
}

/** An object or array for a jsonb column. */
export class Json {
  readonly text: string

  constructor(value: unknown) {
    this.text = JSON.stringify(value)
  }
}

export type Parameter = string | number | boolean | null | Date | Uint8Array | readonly Parameter[] | Identifier | Json | Fragment

// biome-ignore lint/suspicious/noExplicitAny: only the SQL knows its row type; callers name it or accept any
export type Rows = Record<string, any>[]

/** What the driver receives. With a name, PostgreSQL parses the text once per connection. */
export type Query = { name: string; text: string; values: unknown[] }

/** Part of a statement. It is sent on its own only if it is awaited. */
export type Fragment = Statement<readonly unknown[]>

/** SQL with separate parameters. It runs once, when first awaited, where it was created: on the pool or in a transaction. */
export class Statement<T extends readonly unknown[]> implements Promise<T> {
  readonly strings: TemplateStringsArray
  readonly parameters: readonly Parameter[]
  readonly #run: (query: Query) => Promise<Rows>
  #result: Promise<T> | undefined

  constructor(strings: TemplateStringsArray, parameters: readonly Parameter[], run: (query: Query) => Promise<Rows>) {
    this.strings = strings
    this.parameters = parameters
    this.#run = run
  }

  get [Symbol.toStringTag](): string {
    return 'Statement'
  }

  // biome-ignore lint/suspicious/noThenProperty: awaiting a statement runs it
  then<R = T, E = never>(
    onRows?: ((rows: T) => R | PromiseLike<R>) | null,
    onError?: ((error: unknown) => E | PromiseLike<E>) | null,
  ): Promise<R | E> {
    return this.#execute().then(onRows, onError)
  }

  catch<E = never>(onError?: ((error: unknown) => E | PromiseLike<E>) | null): Promise<T | E> {
    return this.#execute().catch(onError)
  }

  finally(onSettled?: (() => void) | null): Promise<T> {
    return this.#execute().finally(onSettled)
  }

  #execute(): Promise<T> {
    this.#result ??= this.#send()
    return this.#result
  }

  async #send(): Promise<T> {
    return (await this.#run(toQuery(this))) as readonly unknown[] as T
  }
}

/** A text without fragments never changes. Looking it up is cheaper than joining it again. */
const fixedTexts = new WeakMap<TemplateStringsArray, { name: string; text: string }>()

export function toQuery({ strings, parameters }: Fragment): Query {
  // Checked each time: the same place in the source may get a value now and a fragment later.
  const isFixed = parameters.every(leavesTextAlone)
  const fixed = isFixed ? fixedTexts.get(strings) : undefined
  if (fixed) return { name: fixed.name, text: fixed.text, values: parameters.map(toValue) }
  const values: unknown[] = []
  const text = joinText(strings, parameters, values)
  const name = nameOf(text)
  if (isFixed) fixedTexts.set(strings, { name, text })
  return { name, text, values }
}

function joinText(strings: TemplateStringsArray, parameters: readonly Parameter[], values: unknown[]): string {
  return strings.reduce((before, after, index) => {
    const parameter = parameters[index - 1] as Parameter
    if (parameter instanceof Statement) return before + joinText(parameter.strings, parameter.parameters, values) + after
    if (parameter instanceof Identifier) return before + parameter.text + after
    // PostgreSQL assumes text where the context does not say that a parameter is jsonb.
    const cast = parameter instanceof Json ? '::jsonb' : ''
    return `${before}$${values.push(toValue(parameter))}${cast}${after}`
  })
}

const leavesTextAlone = (parameter: Parameter): boolean =>
  !(parameter instanceof Statement || parameter instanceof Identifier || parameter instanceof Json)

function toValue(parameter: Parameter): unknown {
  // The driver would send null, and a condition with a forgotten value would silently match nothing.
  if (parameter === undefined) throw new TypeError('a parameter of a statement is undefined')
  return parameter instanceof Json ? parameter.text : parameter
}

/** Texts come from this program, never from a request, so there are a few hundred at most. */
const names = new Map<string, string>()

function nameOf(text: string): string {
  const name = names.get(text) ?? `s${names.size + 1}`
  names.set(text, name)
  return name
}
