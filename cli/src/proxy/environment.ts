import type { ConfigMistake } from '../../../sdk/src/proxy/index.ts'

const REFERENCE = /\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)\}|\$\{/g

type Environment = Readonly<Record<string, string | undefined>>

/** Replaces `${NAME}` in all texts. `$${` stands for `${`. */
export function withEnvironment(
  value: unknown,
  env: Environment,
  mistakes: ConfigMistake[],
  path: readonly (string | number)[] = [],
): unknown {
  if (Array.isArray(value)) return value.map((one, index) => withEnvironment(one, env, mistakes, [...path, index]))
  if (typeof value === 'object' && value !== null)
    return Object.fromEntries(
      Object.entries(value).map(([name, one]) => [name, withEnvironment(one, env, mistakes, [...path, name])]),
    )
  if (typeof value !== 'string') return value
  return value.replace(REFERENCE, (text, name: string | undefined) => {
    if (text === '$${') return '${'
    // An empty variable is a mistake too: it could be a password.
    const found = name === undefined ? undefined : env[name]
    if (!found) mistakes.push({ path, message: reasonOf(name) })
    return found ?? ''
  })
}

function reasonOf(name: string | undefined): string {
  if (name === undefined)
    return `must have the name of an environment variable between "\${" and "}". Write "$\${" for "\${" itself.`
  return `The environment variable ${name} is not set, or is empty.`
}
