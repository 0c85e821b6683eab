import { describe, expect, test } from 'vitest'
import { excerptOf } from '../client/search.ts'

const LONG = 'x'.repeat(300)
const matchesIn = (pieces: string[]): string[] => pieces.filter((_, place) => place % 2 === 1)

describe('docs: the excerpt of a search result', () => {
  test('has the words around the first match, uncut, and marks every match', () => {
    const text = `${'before '.repeat(20)}Invoice and an invoice ${'after '.repeat(40)}`
    const pieces = excerptOf(text, ['invoice'])
    expect(matchesIn(pieces)).toEqual(['Invoice', 'invoice'])
    expect(pieces.join('')).toMatch(/^… (before )+Invoice and an invoice( after)+ …$/)
  })

  test.each([
    ['before it', `start ${LONG}/pay end`],
    ['after it', `start ${'and '.repeat(30)}pay/${LONG}`],
    ['around it, without any space', `${LONG}/pay/${LONG}`],
  ])('has the match also with a very long word %s', (_, text) => {
    const pieces = excerptOf(text, ['pay'])
    expect(matchesIn(pieces)).toEqual(['pay'])
    expect(pieces.join('').length).toBeLessThan(200)
  })

  test('marks whole words, not parts of others', () => {
    expect(matchesIn(excerptOf('Repay what the payer can pay.', ['pay']))).toEqual(['pay'])
    expect(matchesIn(excerptOf('A payment, to pay.', ['pay', 'payment']))).toEqual(['payment', 'pay'])
  })

  test('is the beginning of the text if the match is in the title', () => {
    expect(excerptOf('All of it.', ['elsewhere'])).toEqual(['All of it.'])
  })
})
