import { Identifier, Json, type Parameter, type Query, type Rows, Statement } from './statement.ts'

/** Runs statements, on any connection of the pool or in one transaction. A function that takes it works with both. */
export interface Sql {
  <T extends readonly unknown[] = Rows>(strings: TemplateStringsArray, ...parameters: Parameter[]): Statement<T>
  (identifier: string): Identifier
  json(value: unknown): Json
  /** Sends the text as it is, one or several statements, without parameters. Returns the rows if there is a single statement. */
  unsafe(text: string): Promise<Rows>
}

type Target = { run: (query: Query) => Promise<Rows>; runText: (text: string) => Promise<Rows> }

export function sqlOn({ run, runText }: Target): Sql {
  const tag = (first: TemplateStringsArray | string, ...parameters: Parameter[]) =>
    typeof first === 'string' ? new Identifier(first) : new Statement(first, parameters, run)
  return Object.assign(tag as Pick<Sql, never> as Sql, { json: (value: unknown) => new Json(value), unsafe: runText })
}
