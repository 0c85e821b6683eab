import { createInterface } from 'node:readline'

const AGREED = 'I understand'
const INTRODUCTION = [
  `Backup
This software stands in for phoenixd: no real money moves, and the seed is worth nothing outside the sandbox.
Your 12-words seed is located in DATADIR. Do not share the same seed with other instances.`,
  `Continuous liquidity
Liquidity is free in the sandbox, unless its fee-credit behaviour is switched on: then a payment that is too small to open a
channel is added to the fee credit, which is non-refundable.`,
]

/**
 * phoenixd's questions on a first run without --agree-to-terms-of-service: the same number, with the same expected answers. When
 * stdin ends (/dev/null, a closed pipe), the remaining questions count as answered.
 */
export async function askToAgree(dataDir: string): Promise<void> {
  const lines = createInterface({ input: process.stdin, terminal: false })[Symbol.asyncIterator]()
  const answer = async (): Promise<string> => {
    const { value, done } = await lines.next()
    return done ? AGREED : value
  }
  for (const paragraph of INTRODUCTION) {
    process.stdout.write(`${paragraph.replace('DATADIR', dataDir)}\n\nPlease confirm by typing [I understand]: `)
    while ((await answer()).trim() !== AGREED) process.stdout.write('Please type those exact words: [I understand]: ')
  }
  process.stdout.write('Press any key to continue...\n')
  await answer()
}
