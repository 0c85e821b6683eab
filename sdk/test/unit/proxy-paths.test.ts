import { describe, expect, test } from 'vitest'
import { targetOf } from '../../src/proxy/config/path.ts'
import { hides, matchesPath, type Pattern, patternOf, takesMethod } from '../../src/proxy/config/pattern.ts'

function pattern(match: string): Pattern {
  const made = patternOf(match)
  if (typeof made === 'string') throw new Error(made)
  return made
}
const matches = (match: string, path: string): boolean => matchesPath(pattern(match), targetOf(path)?.segments ?? ['?'])

describe('the form in which a path is matched and forwarded', () => {
  test.each([
    ['/', '/'],
    ['/a/b', '/a/b'],
    ['/a/', '/a/'],
    ['/a?b=1&c=%2F..%2F', '/a?b=1&c=%2F..%2F'],
    ['/a?', '/a?'],
    ['/a?//../;', '/a?//../;'],
    ['/.well-known/x', '/.well-known/x'],
    ['/a/...', '/a/...'],
    ['/a.b', '/a.b'],
    ['/%61dmin', '/admin'],
    ['/%41', '/A'],
    ['/a%7eb', '/a~b'],
    ['/a%21b', '/a!b'],
    ['/a%20b', '/a%20b'],
    ['/a+b', '/a%2Bb'],
    ['/a%2bb', '/a%2Bb'],
    ['/users/@bob:x,y=1&z$', '/users/@bob:x,y=1&z$'],
    ['/users/%40bob%3a', '/users/@bob:'],
    ['/caf%c3%a9', '/caf%C3%A9'],
    ['/100%25', '/100%25'],
    ['/a|b', '/a%7Cb'],
    ['/a[1]', '/a%5B1%5D'],
    ['/%3b', '/%3B'],
  ])('C74: %s is %s', (requested, canonical) => {
    expect(targetOf(requested)?.url).toBe(canonical)
    expect(targetOf(canonical)?.url, 'and stays so').toBe(canonical)
  })

  test.each([
    ...[
      '',
      'a',
      '*',
      'http://other/a',
      '//',
      '//a',
      '/a//b',
      '/a//',
      '/.',
      '/..',
      '/a/./b',
      '/a/../b',
      '/a/..',
      '/%2e',
      '/a/%2E%2e/b',
    ],
    ...[
      '/.%2e/b',
      '/a%2fb',
      '/a%2Fb',
      '/a\\b',
      '/a%5cb',
      '/..\\b',
      '/a;b',
      '/..;/b',
      '/a;',
      '/%',
      '/%4',
      '/%zz',
      '/%ff',
      '/%c0%ae',
    ],
    ...[
      '/%00',
      '/a%0d%0ab',
      '/a%7f',
      '/%252e',
      '/%2561dmin',
      '/%25%36%31',
      '/a#b',
      '/a?b#c',
      '/a b',
      '/\u00e9',
      '/a\u0000',
      '/a?\t',
    ],
  ])('C74: %j is refused', (requested) => {
    expect(targetOf(requested)).toBeUndefined()
  })
})

describe('patterns', () => {
  test.each([
    ['/', '/', true],
    ['/', '/a', false],
    ['/a', '/a', true],
    ['/a', '/A', false],
    ['/a', '/a/', false],
    ['/a/', '/a', false],
    ['/a', '/%61', true],
    ['/caf%c3%a9', '/caf%C3%A9', true],
    ['/a!b', '/a%21b', true],
    ['/a/:id', '/a/1', true],
    ['/a/:id', '/a/', false],
    ['/a/:id', '/a/1/2', false],
    ['/a/*', '/a/1', true],
    ['/a/*', '/a/', false],
    ['/a/*/c', '/a/b/c', true],
    ['/a/**', '/a', true],
    ['/a/**', '/a/', true],
    ['/a/**', '/a/b/c/', true],
    ['/a/**', '/ab', false],
    ['/**', '/', true],
    ['/**', '/a/b', true],
    ['/%3Aid', '/:id', true],
    ['/%3Aid', '/x', false],
  ])('C73: %s, requested %s: %s', (match, path, is) => {
    expect(matches(match, path)).toBe(is)
  })

  test.each([
    ['GET /a', ['GET', 'HEAD'], ['POST', 'OPTIONS', 'get']],
    ['POST|PUT /a', ['POST', 'PUT'], ['GET', 'HEAD']],
    ['HEAD /a', ['HEAD'], ['GET']],
    ['/a', ['GET', 'HEAD', 'POST', 'PROPFIND'], []],
  ])('C73: %s takes %j and not %j', (match, taken, others) => {
    expect(taken.filter((method) => !takesMethod(pattern(match), method))).toEqual([])
    expect(others.filter((method) => takesMethod(pattern(match), method))).toEqual([])
  })

  test.each([
    ...[
      '',
      'a',
      'GET',
      'GET a',
      'get /a',
      'GET, POST /a',
      'GET|/a',
      '|GET /a',
      'TRACE /a',
      'CONNECT /a',
      'GET /a /b',
      '/a?b',
      '/a#b',
    ],
    ...[
      '/a//b',
      '//',
      '/../a',
      '/./a',
      '/a;b',
      '/a%2fb',
      '/%',
      '/caf\u00e9',
      '/**/a',
      '/a**',
      '/*.json',
      '/:id.json',
      '/:',
      '/:1',
    ],
  ])('C73: %j is not a pattern', (match) => {
    expect(typeof patternOf(match)).toBe('string')
  })

  test.each([
    ['/**', 'GET /a', true],
    ['/a/**', '/a/:id', true],
    ['/a/:id', '/a/*', true],
    ['/a/:id', '/a/b', true],
    ['GET /a', 'HEAD /a', true],
    ['GET /a', '/a', false],
    ['GET /a', 'GET|POST /a', false],
    ['/a/b', '/a/:id', false],
    ['/a/:id', '/a/**', false],
    ['/a/*', '/a/', false],
    ['/a/:id', '/a/b/c', false],
    ['/a/b/**', '/a/**', false],
  ])('C73: after %s, %s never matches: %s', (earlier, later, is) => {
    expect(hides(pattern(earlier), pattern(later))).toBe(is)
  })
})
