import { describe, expect, test } from 'vitest'
import { send } from '../../../sandboxd/test/harness.ts'
import { nodeTargets } from '../../src/http/node-proxy/target.ts'
import { bothWays, DOMAIN, fakeNode, main, node, raw, statusOf, withLimits } from '../support/proxy.ts'

describe('C28: node hosts', () => {
  test.each([
    ['abc.nodes.test', '/x?y', 'node_abc', '/x?y'],
    ['ABC.Nodes.TEST:8080', '/', 'node_abc', '/'],
    ['abc.nodes.test', '?x', 'node_abc', '/?x'],
    ['abc.nodes.test.', '/x', 'node_abc', '/x'],
    ['abc.nodes.test..:1', '/x', 'node_abc', '/x'],
    ['abc.nodes.test', '//v1', 'node_abc', '//v1'],
    ['abc.nodes.test', '/n/node_b/x', 'node_abc', '/n/node_b/x'],
    ['abc.nodes.test', '/../../v1', 'node_abc', '/../../v1'],
  ])('C28: %s %s goes to %s as %s', (host, url, nodeId, path) => {
    expect(nodeTargets(DOMAIN)({ url, headers: { host } })).toEqual({ nodeId, path })
  })

  test.each([
    ['abc.nodes.test', '*'],
    ['abc.nodes.test', 'http://x/v1'],
    ['a.b.nodes.test', '/v1'],
    [`${'a'.repeat(64)}.nodes.test`, '/v1'],
    ['user@abc.nodes.test', '/v1'],
    ['a/../v1?.nodes.test', '/v1'],
  ])('C28: %s %s goes to no node, and not to the service', (host, url) => {
    expect(nodeTargets(DOMAIN)({ url, headers: { host } })).toMatchObject({ nodeId: undefined })
  })

  test.each([
    ['nodes.test', '/v1'],
    ['abcnodes.test', '/v1'],
    ['abc.nodes.test.example', '/v1'],
    [undefined, '/v1'],
    ['nodes.test', '/n/node_a/x'],
  ])('C28: %s %s goes to the service', (host, url) => {
    expect(nodeTargets(DOMAIN)({ url, headers: host === undefined ? {} : { host } })).toBeUndefined()
  })

  test.each([
    ['/n/node_a', 'node_a', '/'],
    ['/n/node_a?x', 'node_a', '/?x'],
    ['/n/node_a/x?y', 'node_a', '/x?y'],
    ['/n/node_a;x/', undefined, '/'],
    ['/n//x', undefined, '/'],
    [`/n/${'a'.repeat(201)}/x`, undefined, '/'],
  ])('C28: without a domain for nodes, %s goes to %s as %s, whatever the host', (url, nodeId, path) => {
    expect(nodeTargets(undefined)({ url, headers: { host: 'abc.nodes.test' } })).toEqual({ nodeId, path })
    expect(nodeTargets(undefined)({ url: '/v1', headers: { host: 'abc.nodes.test' } })).toBeUndefined()
  })

  test.each([
    '/v1/thing',
    '//v1/thing',
    '/../v1/thing',
    '/%2e%2e/%2e%2e/v1/thing',
    '/..%2f..%2fv1/thing',
    '/operator/v1/thing',
    '/n/node_b/thing',
    '/../node_b/thing',
    '//n/node_b/thing',
    '/',
    '?x',
    '/;/../v1/thing',
    '/#/v1/thing',
    'http://service.test/v1/thing',
    'http://service.test/n/node_b/thing',
    'http://a.nodes.test/v1/thing',
    '*',
    '/%zz',
  ])('C28: on a node’s host, the service and other nodes are unreachable: %s', async (target) => {
    const other = await fakeNode()
    main.nodes.set('node_b', other)
    const ask = (path: string, more = ''): string => `${path} HTTP/1.1\r\nHost: a.${DOMAIN}\r\n${more}\r\n`
    const upgrade = 'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n'
    for (const method of ['GET', 'POST'])
      for (const more of ['Connection: close\r\n', ...(method === 'GET' ? [upgrade] : [])]) {
        const answer = await raw(main.port, `${method} ${ask(target, more)}`)
        expect(answer).not.toContain('OF THE SERVICE')
        expect([200, 400, 404]).toContain(statusOf(answer))
        if (statusOf(answer) === 200) expect(answer).toContain('of the node')
      }
    expect(other.connections()).toBe(0)
    for (const { url } of node.seen) expect(`/n/node_a${url}`).toBe(`/n/node_a${target.startsWith('?') ? '/' : ''}${target}`)
  })

  test('C28: a request for any other host goes to the service', async () => {
    for (const host of ['service.test', DOMAIN])
      expect((await send(main.port, 'GET', '/v1/thing', { headers: { host } })).text).toBe('OF THE SERVICE')
  })
})

describe('C51: with a domain for nodes', () => {
  test('C51: a node responds only under its own name; /n/ on another host is 404, in any spelling', async () => {
    const one = await withLimits({}, { isByName: true })
    one.nodes.set('node_a', node)
    expect((await send(one.port, 'GET', '/getinfo', { headers: { host: `a.${DOMAIN}:8080` } })).status).toBe(200)
    for (const host of ['127.0.0.1', DOMAIN, 'service.test'])
      for (const path of ['/n/node_a', '/n/node_a/getinfo', '/%6e/node_a/getinfo', '/n/node_none/'])
        for (const answer of await bothWays(one, path, `Host: ${host}\r\n`)) {
          expect(statusOf(answer)).toBe(404)
          expect(answer).toContain('"not_found"')
        }
    expect(node.seen).toHaveLength(1)
  })

  test('security 16: a domain with a port is matched by its name, whatever the port of the request', async () => {
    const one = await withLimits({}, { domain: 'nodes.test:8443', isByName: true })
    one.nodes.set('node_a', node)
    for (const host of ['a.nodes.test:8443', 'a.nodes.test', 'A.nodes.test.:1'])
      expect((await send(one.port, 'GET', '/getinfo', { headers: { host } })).status).toBe(200)
    expect(node.seen.map(({ url }) => url)).toEqual(['/getinfo', '/getinfo', '/getinfo'])
  })
})

describe('C28: smuggling', () => {
  const SECOND = 'GET /n/node_a/smuggled HTTP/1.1\r\nHost: x\r\n\r\n'
  const body = `0\r\n\r\n${SECOND}`
  const CASES: [string, string][] = [
    [
      'length and chunks',
      `POST /n/node_a/x HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\nTransfer-Encoding: chunked\r\n\r\n${body}`,
    ],
    [
      'chunks and length',
      `POST /n/node_a/x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n${body}`,
    ],
    [
      'two lengths',
      `POST /n/node_a/x HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nContent-Length: ${SECOND.length}\r\n\r\n${SECOND}`,
    ],
    ['a list of lengths', `POST /n/node_a/x HTTP/1.1\r\nHost: x\r\nContent-Length: 0, ${SECOND.length}\r\n\r\n${SECOND}`],
    ['a length with a sign', `POST /n/node_a/x HTTP/1.1\r\nHost: x\r\nContent-Length: +0\r\n\r\n${SECOND}`],
    [
      'a folded coding',
      `POST /n/node_a/x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding:\r\n chunked\r\nContent-Length: 4\r\n\r\n${body}`,
    ],
    ['a space before the colon', `POST /n/node_a/x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding : chunked\r\n\r\n${body}`],
    ['another coding', `POST /n/node_a/x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n${body}`],
    ['gzip, then chunks', `POST /n/node_a/x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n${body}`],
    ['chunks, then identity', `POST /n/node_a/x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, identity\r\n\r\n${body}`],
    [
      'two codings',
      `POST /n/node_a/x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n${body}`,
    ],
    [
      'a broken chunk size',
      `POST /n/node_a/x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n`,
    ],
    ['a line feed in the path', `GET /n/node_a/x\nX: y HTTP/1.1\r\nHost: x\r\n\r\n`],
    ['CRLF in the path', `GET /n/node_a/x\r\nX: y HTTP/1.1\r\nHost: x\r\n\r\n`],
    ['a bare carriage return', `GET /n/node_a/x HTTP/1.1\r\nHost: x\r\nA: b\rTransfer-Encoding: chunked\r\n\r\n`],
    ['a null byte', `GET /n/node_a/x HTTP/1.1\r\nHost: x\r\nA: b\0c\r\n\r\n`],
    ['an absolute URI', 'GET http://evil.example/n/node_a/x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'],
    ['an absolute URI of the proxy', 'GET http://127.0.0.1/n/node_a/x HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n'],
    ['an authority', 'CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: x\r\n\r\n'],
    ['a user in the path', 'GET /n/node_a@evil.example/x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'],
    ['no version', 'GET /n/node_a/x\r\n\r\n'],
    ['another version', 'GET /n/node_a/x HTTP/2.0\r\nHost: x\r\n\r\n'],
    [
      'chunks in HTTP/1.0, which has none (security 22)',
      `POST /n/node_a/x HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n`,
    ],
  ]
  test.each(CASES)('C28: %s: refused, or the connection closed; the node sees one request at most', async (_name, bytes) => {
    const status = statusOf(await raw(main.port, bytes))
    expect(status === 0 || (status >= 400 && status < 500)).toBe(true)
    expect(node.seen.length).toBeLessThanOrEqual(1)
    expect(node.seen.filter(({ url, body: got }) => url.includes('smuggled') || got.length > 0)).toEqual([])
  })

  test('C28: a folded header, and bytes in hex, reach the node as one request with one meaning', async () => {
    for (const path of ['/missing/%0d%0aX:%20y', '/missing/..;/%2e%2e//']) {
      node.seen.length = 0
      const answer = await raw(main.port, `GET /n/node_a${path} HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\nConnection: close\r\n\r\n`)
      const status = statusOf(answer)
      expect(status === 0 || (status >= 400 && status < 500)).toBe(true)
      for (const { url, headers } of node.seen) {
        expect(url).toBe(path)
        expect(headers.map(([name]) => name).filter((name) => name !== 'connection')).toEqual(['host', 'a'])
      }
      expect(node.seen.length).toBeLessThanOrEqual(1)
    }
  })
})
