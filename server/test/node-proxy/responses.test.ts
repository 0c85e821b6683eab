import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { connect, createServer as createTcpServer } from 'node:net'
import { beforeAll, describe, expect, test } from 'vitest'
import { eventually, send } from '../../../sandboxd/test/harness.ts'
import { PATIENCE_MS } from '../../../testing/eventually.ts'
import { PROXY_LIMITS } from '../../src/http/node-proxy/proxy.ts'
import {
  eagerNode,
  fakeNode,
  listenOn,
  MIB,
  MOST,
  main,
  node,
  opened,
  pairsOf,
  raw,
  rawNode,
  type Service,
  sockets,
  statusOf,
  textOf,
  UNKNOWN,
  withLimits,
} from '../support/proxy.ts'

describe('C28: what the client gets', () => {
  test('C28, C49: no headers that a browser would store or trust, and our own headers', async () => {
    const hostile = await fakeNode((_request, response) =>
      response
        .writeHead(418, 'Short and stout', [
          ...['Set-Cookie', 'a=1', 'Set-Cookie', 'b=2', 'Clear-Site-Data', '"*"', 'Service-Worker-Allowed', '/'],
          ...['Connection', 'X-Hop', 'X-Hop', '1', 'Keep-Alive', 'timeout=77', 'Proxy-Authenticate', 'Basic'],
          ...['Content-Security-Policy', "default-src 'self'", 'X-Content-Type-Options', 'sniff', 'X-Request-Id', 'theirs'],
          ...['WWW-Authenticate', 'Basic', 'X-Twice', '1', 'X-Twice', '2', 'Constructor', 'x', 'Location', '/', 'ETag', '"x"'],
          ...['Strict-Transport-Security', 'max-age=1', 'Alt-Svc', 'h2=":1"', 'NEL', '{}', 'Report-To', '{}', 'Accept-CH', 'DPR'],
          ...['Reporting-Endpoints', 'a="/"', 'Refresh', '0', 'Link', '</x>; rel=preload', 'Access-Control-Allow-Origin', '*'],
          ...[
            'Content-Type',
            'text/x',
            'Content-Encoding',
            'x',
            'Retry-After',
            '1',
            'Cache-Control',
            'no-cache',
            'Sec-Fetch-X',
            '1',
          ],
        ])
        .end('tea'),
    )
    main.nodes.set('node_hostile', hostile)
    const { rawHeaders, statusCode, statusMessage } = await new Promise<IncomingMessage>((resolve) =>
      opened(main.port, '/n/node_hostile/').then((outgoing) => outgoing.on('response', resolve).end()),
    )
    const headers = pairsOf(rawHeaders)
    const values = (name: string): string[] => headers.filter(([one]) => one === name).map(([, value]) => value)
    expect([statusCode, statusMessage]).toEqual([418, 'Short and stout'])
    expect(values('content-security-policy')).toEqual(["sandbox; default-src 'none'"])
    expect(values('x-content-type-options')).toEqual(['nosniff'])
    expect(values('x-request-id')).toEqual([expect.stringMatching(/^ours-/)])
    expect(values('www-authenticate')).toEqual(['Basic'])
    const passed = [...new Set(headers.map(([name]) => name))].sort()
    // Connection and framing headers in this list are the proxy's own, not the node's.
    expect(passed).toEqual([
      ...['cache-control', 'connection', 'content-encoding', 'content-security-policy', 'content-type', 'date'],
      ...['retry-after', 'transfer-encoding', 'www-authenticate', 'x-content-type-options', 'x-request-id'],
    ])
    expect(values('keep-alive')).not.toContain('timeout=77')
  })

  test('C28, C49: redirects are not followed, and do not redirect a browser', async () => {
    const canary = await fakeNode()
    const location = `http://127.0.0.1:${canary.port}/`
    main.nodes.set('node_redirect', await fakeNode((_request, response) => response.writeHead(307, { location }).end()))
    const answer = await send(main.port, 'POST', '/n/node_redirect/x', { body: 'b' })
    expect([answer.status, answer.headers.location, canary.connections()]).toEqual([307, undefined, 0])
  })

  test('C28: answers without a body, of a known length, and in chunks keep their framing', async () => {
    const framed = await fakeNode((request, response) => {
      if (request.url === '/204') response.writeHead(204).end()
      else if (request.url === '/304') response.writeHead(304, { etag: '"x"' }).end()
      else if (request.url === '/length')
        response.writeHead(200, { 'content-length': 5 }).end(request.method === 'GET' ? 'hello' : '')
      else response.end('hello')
    })
    main.nodes.set('node_framed', framed)
    const ask = async (method: string, path: string) => {
      const { status, headers, text } = await send(main.port, method, `/n/node_framed${path}`)
      return [status, headers['content-length'], text]
    }
    expect(await ask('GET', '/204')).toEqual([204, undefined, ''])
    expect(await ask('GET', '/304')).toEqual([304, undefined, ''])
    expect(await ask('GET', '/length')).toEqual([200, '5', 'hello'])
    expect(await ask('HEAD', '/length')).toEqual([200, '5', ''])
  })
})

test('C28: requests on one connection to the node leave no listeners behind', async () => {
  main.nodes.set('node_kept', await fakeNode((_request, response) => response.end('tea')))
  const warnings: Error[] = []
  const note = (warning: Error): void => void warnings.push(warning)
  process.on('warning', note)
  try {
    for (let at = 0; at < 12; at++) expect((await send(main.port, 'GET', '/n/node_kept/')).status).toBe(200)
    await new Promise(setImmediate)
  } finally {
    process.removeListener('warning', note)
  }
  expect(warnings.filter(({ name }) => name === 'MaxListenersExceededWarning')).toEqual([])
})

describe('C28: streams', () => {
  test('C28: each byte is forwarded immediately, both ways', async () => {
    main.nodes.set('node_echo', await eagerNode((request, response) => void request.pipe(response)))
    const outgoing = await opened(main.port, '/n/node_echo/', { method: 'POST' })
    outgoing.write('first')
    const [response] = await once(outgoing, 'response')
    expect(String((await once(response, 'data'))[0])).toBe('first')
    outgoing.write('second')
    expect(String((await once(response, 'data'))[0])).toBe('second')
    outgoing.end()
    await once(response, 'end')
  })

  test('C28: the headers of a response arrive before its body exists', async () => {
    main.nodes.set('node_head', await eagerNode((_request, response) => response.flushHeaders()))
    const outgoing = await opened(main.port, '/n/node_head/')
    outgoing.end()
    expect((await once(outgoing, 'response'))[0].statusCode).toBe(200)
  })

  test('C28: a client that reads slowly slows down the node; nothing is buffered in between, and nothing is lost', async () => {
    const one = await withLimits({ responseBytes: 512 * MIB })
    const total = 128 * MIB
    let written = 0
    const big = await eagerNode((_request, response) => {
      const piece = Buffer.alloc(MIB)
      const more = (): void => {
        while (written < total) {
          written += piece.length
          if (!response.write(piece)) return void response.once('drain', more)
        }
        response.end()
      }
      more()
    })
    one.nodes.set('node_big', big)
    const outgoing = await opened(one.port, '/n/node_big/')
    outgoing.end()
    const [response] = await once(outgoing, 'response')
    let last = -1
    await eventually(async () => {
      const before = last
      last = written
      await new Promise((resolve) => setTimeout(resolve, 200))
      return before === last
    }, 'the node to stall')
    expect(written).toBeLessThan(total / 2)
    let received = 0
    for await (const chunk of response) received += (chunk as Buffer).length
    expect(received).toBe(total)
  })

  test('C28: a node that reads slowly slows the client down', async () => {
    const one = await withLimits({ requestBytes: 512 * MIB })
    let incoming: IncomingMessage | undefined
    one.nodes.set(
      'node_slow',
      await eagerNode((request, response) => {
        incoming = request.pause()
        request.once('end', () => response.end('done'))
      }),
    )
    const outgoing = await opened(one.port, '/n/node_slow/', { method: 'POST' })
    let sent = 0
    const piece = Buffer.alloc(MIB)
    let last = -1
    await eventually(async () => {
      for (let index = 0; index < 64 && !outgoing.writableNeedDrain; index++) {
        sent += piece.length
        outgoing.write(piece)
      }
      const before = last
      last = sent
      await new Promise((resolve) => setTimeout(resolve, 200))
      return before === last && incoming
    }, 'the client to stall')
    expect(sent).toBeLessThan(64 * MIB)
    outgoing.end()
    let received = 0
    incoming?.on('data', (chunk: Buffer) => {
      received += chunk.length
    })
    incoming?.resume()
    const [response] = await once(outgoing, 'response')
    expect([await textOf(response), received]).toEqual(['done', sent])
  })
})

describe('C28: times', () => {
  /** For tests in which every request ends at its time limit. */
  let one: Service
  /** For tests in which something must arrive before the limit, which may take seconds on a busy machine. */
  let generous: Service
  const GENEROUS_MS = 5_000
  beforeAll(async () => {
    one = await withLimits({ answerMs: 400, payingAnswerMs: 1_500 })
    generous = await withLimits({ answerMs: GENEROUS_MS })
  })

  test('C28: the real limits are 10 s, 120 s for paying calls, two idle minutes for websockets, 64 KiB and 16 MiB', () => {
    expect(PROXY_LIMITS).toEqual({
      answerMs: 10_000,
      payingAnswerMs: 120_000,
      websocketIdleMs: 120_000,
      requestBytes: 64 * 1024,
      responseBytes: 16 * MIB,
      concurrent: 64,
    })
  })

  test('C28: a silent node, and one that trickles its headers: 502 in time, and its connection is closed', async () => {
    let closed = 0
    const silent = createTcpServer((socket) =>
      socket
        .on('error', () => undefined)
        .on('close', () => closed++)
        .resume(),
    )
    const trickling = createTcpServer((socket) => {
      socket.write('HTTP/1.1 200 OK\r\n')
      const timer = setInterval(() => socket.write('x-more: 1\r\n'), 50)
      socket
        .on('error', () => undefined)
        .on('close', () => clearInterval(timer))
        .on('close', () => closed++)
        .resume()
    })
    for (const server of [silent, trickling]) {
      one.nodes.set('node_slow', await listenOn(server))
      const start = performance.now()
      const answer = await send(one.port, 'GET', '/n/node_slow/')
      expect([answer.status, answer.json()]).toEqual([502, UNKNOWN])
      expect(performance.now() - start).toBeGreaterThan(350)
    }
    await eventually(() => closed === 2, 'both connections to end')
  })

  test('C28: a node that falls silent during its response is cut off; one that continues slowly is not', async () => {
    const patient = await eagerNode((_request, response) => {
      let left = 12
      const timer = setInterval(() => {
        response.write('x')
        if (--left > 0) return
        clearInterval(timer)
        response.end()
      }, GENEROUS_MS / 10)
    })
    generous.nodes.set('node_patient', patient)
    const slow = send(generous.port, 'GET', '/n/node_patient/')
    generous.nodes.set('node_slow', await eagerNode((_request, response) => void response.write('half')))
    const outgoing = await opened(generous.port, '/n/node_slow/')
    outgoing.end()
    const [response] = await once(outgoing, 'response')
    await expect(textOf(response)).rejects.toThrow('aborted')
    expect((await slow).text).toBe('x'.repeat(12))
  })

  test('C28: only paying calls, and only by POST, may take longer, even longer than an idle connection may stay open', async () => {
    const connectionTimeoutMs = 5_000
    const limited = await withLimits({ answerMs: 400, payingAnswerMs: PATIENCE_MS }, { connectionTimeoutMs })
    const slow = await fakeNode((_request, response) => void setTimeout(() => response.end('paid'), connectionTimeoutMs + 1_000))
    limited.nodes.set('node_slow', slow)
    const calls = ['payinvoice', 'payoffer', 'paylnaddress', 'lnurlpay', 'sendtoaddress', 'bumpfee', 'closechannel']
    const paid = await Promise.all(calls.map((call) => send(limited.port, 'POST', `/n/node_slow/${call}?x=1`, { body: 'a=b' })))
    expect(paid.map(({ status }) => status)).toEqual(calls.map(() => 200))
    const others = [
      ['GET', 'payinvoice'],
      ['POST', 'payinvoice/x'],
      ['POST', 'createinvoice'],
    ] as const
    const late = await Promise.all(others.map(([method, path]) => send(limited.port, method, `/n/node_slow/${path}`)))
    expect(late.map(({ status }) => status)).toEqual([502, 502, 502])
  })

  test('C28: paying calls have a time limit too', async () => {
    one.nodes.set('node_silent', await rawNode(() => undefined))
    expect((await send(one.port, 'POST', '/n/node_silent/payinvoice', { body: 'a=b' })).status).toBe(502)
  })

  test('C28: a client that stops sending or reading is disconnected, and so is the node', async () => {
    const seen: IncomingMessage[] = []
    generous.nodes.set('node_any', await eagerNode((request) => void seen.push(request.resume().on('error', () => undefined))))
    const answer = await raw(generous.port, 'POST /n/node_any/ HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nab')
    expect([statusOf(answer), answer.includes('"bad_request"')]).toEqual([400, true])
    await eventually(() => seen[0]?.destroyed, 'the node to lose the request')

    let response: ServerResponse | undefined
    const big = await eagerNode((_request, answering) => {
      response = answering
      answering.on('error', () => undefined).write(Buffer.alloc(15 * MIB))
    })
    generous.nodes.set('node_big', big)
    const deaf = connect(generous.port, '127.0.0.1').pause()
    sockets.push(deaf)
    deaf.write('GET /n/node_big/ HTTP/1.1\r\nHost: x\r\n\r\n')
    await eventually(() => response?.destroyed, 'the node to be let go')
  })
})

describe('C28: sizes', () => {
  test('C28, C49: 64 KiB pass; one byte more is refused before the node is called', async () => {
    const body = Buffer.alloc(MOST, 'a')
    expect((await send(main.port, 'POST', '/n/node_a/x', { body })).status).toBe(200)
    expect(node.seen[0]?.body.length).toBe(MOST)
    const head = `POST /n/node_a/x HTTP/1.1\r\nHost: x\r\nContent-Length: ${MOST + 1}\r\n\r\n`
    const answer = await raw(main.port, head)
    expect([statusOf(answer), answer.includes('"payload_too_large"'), node.seen.length]).toEqual([413, true, 1])
  })

  test('C28: a body in chunks is cut off at the same size, and the node never sees its end', async () => {
    let received = 0
    const aborted = new Promise<void>((resolve) => {
      void eagerNode((request) => {
        request.on('data', (chunk: Buffer) => {
          received += chunk.length
        })
        request.on('error', () => resolve())
      }).then((address) => main.nodes.set('node_eager', address))
    })
    await eventually(() => main.nodes.has('node_eager'), 'the node')
    const chunk = `10000\r\n${'a'.repeat(0x10000)}\r\n`
    const answer = await raw(
      main.port,
      `POST /n/node_eager/x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n${chunk.repeat(18)}`,
    )
    expect([0, 413]).toContain(statusOf(answer))
    await aborted
    expect(received).toBeLessThanOrEqual(MOST)
  })

  test('C28: a body in chunks is also cut off at that size if the node has already responded', async () => {
    main.nodes.set(
      'node_early',
      await eagerNode((request, response) => {
        request.resume()
        response.write('early')
      }),
    )
    const outgoing = await opened(main.port, '/n/node_early/', { method: 'POST' })
    outgoing.write('x')
    const [response] = await once(outgoing, 'response')
    outgoing.write(Buffer.alloc(MOST))
    await expect(textOf(response)).rejects.toThrow('aborted')
  })

  test('C28: a response of 16 MiB passes; a longer one is a 502 if it declares its length, and cut off if not', async () => {
    const big = await fakeNode((request, response) => {
      const size = Number(request.url?.split('/')[2])
      if (request.url?.startsWith('/said')) response.setHeader('content-length', size)
      else response.setHeader('transfer-encoding', 'chunked')
      response.end(Buffer.alloc(size))
    })
    main.nodes.set('node_big', big)
    const most = 16 * MIB
    for (const path of [`said/${most}`, `unsaid/${most}`])
      expect((await send(main.port, 'GET', `/n/node_big/${path}`)).text.length).toBe(most)
    const refused = await send(main.port, 'GET', `/n/node_big/said/${most + 1}`)
    expect([refused.status, refused.json()]).toEqual([502, UNKNOWN])
    await expect(send(main.port, 'GET', `/n/node_big/unsaid/${most + 1}`)).rejects.toThrow('aborted')
    expect((await send(main.port, 'HEAD', `/n/node_big/said/${most + 1}`)).status).toBe(200)
  })

  test('C28: requests per node are limited; further ones are told to retry, and other nodes are unaffected', async () => {
    const one = await withLimits({ concurrent: 3 })
    const held: ServerResponse[] = []
    const hung = await fakeNode((_request, response) => void held.push(response))
    one.nodes.set('node_hung', hung)
    one.nodes.set('node_a', node)
    const waiting = Array.from({ length: 3 }, () => send(one.port, 'GET', '/n/node_hung/'))
    await eventually(() => held.length === 3, 'three requests')
    const refused = await send(one.port, 'GET', '/n/node_hung/')
    expect([refused.status, refused.json().error.code, refused.headers['retry-after']]).toEqual([503, 'service_unavailable', '1'])
    expect((await send(one.port, 'GET', '/n/node_a/')).status).toBe(200)
    for (const response of held) response.end('at last')
    for (const answer of await Promise.all(waiting)) expect(answer.text).toBe('at last')
    const again = send(one.port, 'GET', '/n/node_hung/')
    await eventually(() => held.length === 4, 'the next request')
    held[3]?.end('again')
    expect((await again).text).toBe('again')
    expect(hung.connections()).toBeLessThanOrEqual(3)
  })
})
