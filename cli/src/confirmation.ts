import type { Call } from './call.ts'
import { Failure, usage } from './failure.ts'
import { sanitize } from './terminal.ts'

type Deletion = {
  what: 'node' | 'webhook'
  id: string
  /** What the user has to type. */
  field: 'name' | 'id'
  read: () => Promise<{ value: string; consequences: string }>
}

/** Unless the command has --yes, asks on the terminal, and ends the command if the user does not confirm. */
export async function confirmDeletion(call: Call, { what, id, field, read }: Deletion): Promise<void> {
  if (call.flag('yes')) return
  if (!process.stdin.isTTY || !process.stderr.isTTY)
    throw usage(
      `Without a terminal, --yes is required to delete a ${what}.`,
      `boltyard ${call.command.path} ${sanitize(id)} --yes`,
    )
  const { value, consequences } = await read()
  process.stderr.write(`${sanitize(consequences)}\n`)
  const answer = await ask(call, `Type the ${what}’s ${field} to delete it (${sanitize(value)}): `)
  if (answer.trim() !== value) throw usage(`The ${field} does not match. Nothing was deleted.`)
}

async function ask(call: Call, question: string): Promise<string> {
  const { createInterface } = await import('node:readline/promises')
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  // Readline handles Ctrl-C itself, and its question never settles at the end of the input.
  const closed = new Promise<never>((_, reject) => {
    terminal.on('SIGINT', () => reject(new Failure('interrupted', 'interrupted', 'Nothing was deleted.')))
    terminal.on('close', () => reject(usage('Nothing was deleted.')))
  })
  try {
    return await Promise.race([terminal.question(question, { signal: call.signal }), closed])
  } finally {
    terminal.close()
  }
}
