import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { appendFileSync, copyFileSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { beforeAll, describe, expect, test } from 'vitest'
import { Journal } from '../src/journal.ts'
import { Ledger, type LedgerRecord } from '../src/node/ledger.ts'
import { Daemon, eventually, freePort, startNetwork, type TestHub, TestNode, temporaryDirectory } from './harness.ts'

type Opened<R> = { journal: Journal<R>; records: R[]; log: string[] }

/** A journal whose state is the list of its records. */
async function openList<R>(path: string, identity = 'a test'): Promise<Opened<R>> {
  const records: R[] = []
  const log: string[] = []
  const journal = await Journal.open<R>(path, {
    identity,
    apply: (record) => records.push(record),
    compact: () => records,
    log: (line) => log.push(line),
  })
  return { journal, records, log }
}

async function recordsIn<R>(path: string): Promise<R[]> {
  const { journal, records } = await openList<R>(path)
  await journal.close()
  return records
}

const newPath = (): string => join(temporaryDirectory(), 'journal.db')

/** Writes and closes a journal with these lines. Returns its path. */
async function journalOf(...lines: unknown[][]): Promise<string> {
  const path = newPath()
  const { journal } = await openList(path)
  for (const records of lines) await journal.append(...records)
  await journal.close()
  return path
}

describe('records', () => {
  test('survive, in order, across several openings', async () => {
    const path = newPath()
    for (let round = 0; round < 3; round++) {
      const { journal, records } = await openList(path)
      expect(records).toEqual(Array.from({ length: round * 2 }, (_, index) => ({ index })))
      await journal.append({ index: round * 2 })
      await journal.append({ index: round * 2 + 1 })
      expect(records).toHaveLength(round * 2 + 2)
      await journal.close()
    }
  })

  test('are on disk and applied when append resolves, before the journal is closed', async () => {
    const path = newPath()
    const { journal, records } = await openList(path)
    await journal.append({ text: 'first' })
    expect(records).toEqual([{ text: 'first' }])
    const copy = newPath()
    copyFileSync(path, copy)
    expect(await recordsIn(copy)).toEqual([{ text: 'first' }])
    await journal.close()
  })

  test('of a journal with another identity are refused, and the file left alone', async () => {
    const path = await journalOf([{ a: 1 }])
    const before = readFileSync(path)
    await expect(openList(path, 'another test')).rejects.toThrow(`${path} is not the journal of another test`)
    expect(readFileSync(path)).toEqual(before)
  })

  test('appends, some of them concurrent, are replayed in order', async () => {
    // Each step is a set of concurrent appends; each append is a list of records.
    const appends = fc.array(fc.array(fc.jsonValue(), { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 5 })
    const sessions = fc.array(fc.array(appends, { maxLength: 5 }), { minLength: 1, maxLength: 3 })
    await fc.assert(
      fc.asyncProperty(sessions, async (steps) => {
        const path = newPath()
        const expected: unknown[] = []
        for (const session of steps) {
          const { journal, records } = await openList(path)
          expect(records).toEqual(JSON.parse(JSON.stringify(expected)))
          for (const step of session) {
            await Promise.all(step.map((list) => journal.append(...list)))
            expected.push(...step.flat())
            expect(records).toHaveLength(expected.length)
          }
          await journal.close()
        }
        expect(await recordsIn(path)).toEqual(JSON.parse(JSON.stringify(expected)))
      }),
      { numRuns: 60 },
    )
  })

  test('can be appended as soon as the previous ones are done', async () => {
    const path = newPath()
    const { journal } = await openList(path)
    await journal.append({ n: 1 }).then(() => journal.append({ n: 2 }))
    await journal.append({ n: 3 })
    await journal.close()
    expect(await recordsIn(path)).toEqual([{ n: 1 }, { n: 2 }, { n: 3 }])
  })

  test('of one append stay together when others append at the same time', async () => {
    const path = newPath()
    const { journal } = await openList(path)
    await Promise.all(Array.from({ length: 50 }, (_, writer) => journal.append({ writer, part: 1 }, { writer, part: 2 })))
    await journal.close()
    const expected = Array.from({ length: 50 }, (_, writer) => [
      { writer, part: 1 },
      { writer, part: 2 },
    ])
    expect(await recordsIn(path)).toEqual(expected.flat())
  })
})

describe('a torn last record', () => {
  test('cut at any byte, is dropped without affecting the others; the log says so, and the journal can be continued', async () => {
    const whole = readFileSync(await journalOf([{ n: 1 }], [{ n: 2 }, { text: 'zwei' }], [{ n: 3, text: '₿ – 😀' }, { n: 4 }]))
    const start = whole.lastIndexOf(0x0a, whole.length - 2) + 1
    const kept = [{ n: 1 }, { n: 2 }, { text: 'zwei' }]
    expect(whole.length - start).toBeGreaterThan(40)
    for (let cut = start; cut < whole.length; cut++) {
      const path = newPath()
      writeFileSync(path, whole.subarray(0, cut))
      const { journal, records, log } = await openList<unknown>(path)
      expect(records).toEqual(kept)
      expect(log).toEqual(cut === start ? [] : [`dropped an unfinished record of ${cut - start} bytes at the end of ${path}`])
      expect(readFileSync(path)).toEqual(whole.subarray(0, start))
      await journal.append({ n: 5 })
      await journal.close()
      expect(await recordsIn(path)).toEqual([...kept, { n: 5 }])
    }
  })

  test('of garbage without a newline is dropped the same way', async () => {
    const path = await journalOf([{ n: 1 }])
    appendFileSync(path, Buffer.from([0, 0, 0, 0xff, 0xfe]))
    const { journal, records, log } = await openList(path)
    await journal.close()
    expect(records).toEqual([{ n: 1 }])
    expect(log).toEqual([`dropped an unfinished record of 5 bytes at the end of ${path}`])
  })
})

describe('a damaged record', () => {
  test('with any byte of a complete line changed, is refused with file and line number, and the file is left unchanged', async () => {
    const path = await journalOf([{ n: 1 }], [{ n: 2 }, { text: '₿' }], [{ n: 3 }])
    const whole = readFileSync(path)
    let line = 1
    // Skip the last newline: without it, the line is torn, not damaged.
    for (let at = 0; at < whole.length - 1; at++) {
      for (const bits of [0x01, 0x20, 0x80, whole.readUInt8(at) ^ 0x0a]) {
        if (bits === 0) continue
        const damaged = Buffer.from(whole)
        damaged.writeUInt8(whole.readUInt8(at) ^ bits, at)
        writeFileSync(path, damaged)
        const refusal = await openList(path).then(
          () => 'opened',
          (error: Error) => error.message,
        )
        expect(refusal, `byte ${at} with bits ${bits} flipped`).toContain(`${path} is corrupt at line ${line} `)
        expect(readFileSync(path).equals(damaged)).toBe(true)
      }
      if (whole[at] === 0x0a) line++
    }
    expect(line).toBe(4)
    expect(existsSync(`${path}.new`)).toBe(false)
    writeFileSync(path, whole)
    expect(await recordsIn(path)).toHaveLength(4)
  })

  test('with a part missing in the middle, is refused', async () => {
    const path = await journalOf([{ n: 1 }], [{ n: 2 }])
    const whole = readFileSync(path)
    const second = whole.indexOf(0x0a) + 1
    writeFileSync(path, Buffer.concat([whole.subarray(0, second + 5), whole.subarray(second + 12)]))
    await expect(openList(path)).rejects.toThrow('is corrupt at line 2')
  })

  test('a file without a complete line is not mistaken for a new journal', async () => {
    const path = newPath()
    writeFileSync(path, 'no journal')
    await expect(openList(path)).rejects.toThrow(path)
    expect(readFileSync(path, 'utf8')).toBe('no journal')
  })
})

describe('the compact form', () => {
  const hash = (number: number): string => createHash('sha256').update(String(number)).digest('hex')

  /** Steps that are always possible: numbers select among the existing objects. */
  const step = fc.record({
    kind: fc.constantFrom('invoice', 'received', 'refused', 'funded', 'sending', 'sent', 'unsent', 'conditions'),
    choice: fc.nat(),
    amountMsat: fc.integer({ min: 1, max: 1_000_000_000 }),
    feeMsat: fc.integer({ min: 0, max: 5_000 }),
    capacitySat: fc.option(fc.integer({ min: 0, max: 10_000_000 })),
    flag: fc.boolean(),
    // With 0, several events happen in one millisecond.
    laterMs: fc.constantFrom(0, 0, 1, 1000),
  })
  type Step = typeof step extends fc.Arbitrary<infer T> ? T : never

  /** The records a node would write for these steps: times never go backward, an invoice is paid once, a payment ends once. */
  function recordsOf(steps: Step[]): LedgerRecord[] {
    const records: LedgerRecord[] = []
    const unpaid: string[] = []
    const pending: string[] = []
    let nowMs = 1_700_000_000_000
    const take = (list: string[], choice: number): string | undefined => list.splice(choice % Math.max(1, list.length), 1)[0]
    for (const [index, { kind, choice, amountMsat, feeMsat, capacitySat, flag, laterMs }] of steps.entries()) {
      nowMs += laterMs
      const atMs = nowMs
      if (kind === 'invoice') {
        const paymentHash = hash(index)
        unpaid.push(paymentHash)
        records.push({
          t: 'invoice',
          paymentHash,
          preimage: hash(-index),
          paymentSecret: hash(index + 0.5),
          serialized: `lnbcrt${index}`,
          ...(flag
            ? { amountMsat, externalId: `order ${choice}` }
            : { description: 'any amount', webhookUrl: 'http://127.0.0.1/' }),
          expirySeconds: 86_400,
          createdAtMs: atMs,
        })
      } else if (kind === 'received') {
        const paymentHash = take(unpaid, choice)
        if (!paymentHash) continue
        const liquidityFeeMsat = flag ? Math.min(feeMsat, amountMsat) : 0
        records.push({
          t: 'received',
          paymentHash,
          paymentId: `received-${index}`,
          amountMsat,
          liquidityFeeMsat,
          toFeeCreditMsat: flag ? 0 : feeMsat % (amountMsat + 1),
          feeCreditUsedMsat: Math.floor(liquidityFeeMsat / 2),
          capacitySat,
          atMs,
        })
      } else if (kind === 'refused') records.push({ t: 'refused', paymentId: `refused-${choice % 5}` })
      else if (kind === 'funded') {
        records.push({ t: 'funded', fundId: `fund-${index}`, amountMsat, capacitySat: capacitySat ?? 0 })
      } else if (kind === 'sending') {
        const paymentId = `sending-${index}`
        pending.push(paymentId)
        records.push({
          t: 'sending',
          paymentId,
          paymentHash: hash(choice % 4),
          paymentSecret: hash(index),
          recipient: `02${hash(index)}`,
          invoice: `lnbcrt${index}`,
          amountMsat,
          feeMsat,
          createdAtMs: atMs,
        })
      } else if (kind === 'conditions') {
        records.push({ t: 'conditions', peerUp: flag, feeCredit: !flag, clockAheadMs: choice })
      } else {
        const paymentId = take(pending, choice)
        if (!paymentId) continue
        if (kind === 'sent') records.push({ t: 'sent', paymentId, preimage: hash(choice), atMs })
        else records.push({ t: 'unsent', paymentId, reason: 'because', atMs })
      }
    }
    return records
  }

  const newLedger = (): Ledger => new Ledger({ peerUp: true, feeCredit: false, clockAheadMs: 0 })
  const replayed = (records: LedgerRecord[]): Ledger => {
    const ledger = newLedger()
    for (const record of JSON.parse(JSON.stringify(records)) as LedgerRecord[]) ledger.apply(record)
    return ledger
  }
  /** All public state as plain data: a Map or Set as its entries in order. */
  const stateOf = (ledger: Ledger): unknown =>
    Object.fromEntries(
      Object.entries(ledger).map(([key, value]) => [
        key,
        value instanceof Map ? [...value.entries()] : value instanceof Set ? [...value] : value,
      ]),
    )

  /** Two invoices, of which the newer is paid first, all in one millisecond. */
  const paidInOneMillisecond = (['invoice', 'invoice', 'received', 'received'] as const).map(
    (kind): Step => ({ kind, choice: 1, amountMsat: 1, feeMsat: 0, capacitySat: null, flag: false, laterMs: 0 }),
  )

  test('of any history rebuilds exactly the same state, also when it is compacted again', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const ledger = replayed(recordsOf(steps))
        const once = replayed(ledger.compact())
        expect(stateOf(once)).toEqual(stateOf(ledger))
        expect(stateOf(replayed(once.compact()))).toEqual(stateOf(ledger))
      }),
      { numRuns: 300, examples: [[paidInOneMillisecond]] },
    )
  })

  test('accepts the same further records as the full history', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), fc.nat(60), (steps, at) => {
        const records = recordsOf(steps)
        const compacted = replayed([...replayed(records.slice(0, at)).compact(), ...records.slice(at)])
        expect(stateOf(compacted)).toEqual(stateOf(replayed(records)))
      }),
      { numRuns: 200 },
    )
  })

  test('of more than a thousand invoices, in more than one piece, keeps their order', () => {
    const steps = Array.from({ length: 5_000 }, (_, index): Step => {
      const kind = (['invoice', 'invoice', 'received', 'sending', 'sent'] as const)[index % 5] ?? 'invoice'
      return { kind, choice: index * 7919, amountMsat: 1000 + index, feeMsat: 1, capacitySat: null, flag: true, laterMs: 1 }
    })
    const ledger = replayed(recordsOf(steps))
    expect(ledger.incomingByCreation).toHaveLength(2_000)
    expect(ledger.incomingByReceipt).toHaveLength(1_000)
    expect(stateOf(replayed(ledger.compact()))).toEqual(stateOf(ledger))
  })

  const openLedger = async (path: string): Promise<{ journal: Journal<LedgerRecord>; ledger: Ledger; log: string[] }> => {
    const ledger = newLedger()
    const log: string[] = []
    const journal = await Journal.open<LedgerRecord>(path, {
      identity: 'a node',
      apply: (record) => ledger.apply(record),
      compact: () => ledger.compact(),
      log: (line) => log.push(line),
    })
    return { journal, ledger, log }
  }
  const conditions = (clockAheadMs: number): LedgerRecord => ({ t: 'conditions', peerUp: true, feeCredit: true, clockAheadMs })

  /** A journal with some payments and this many condition changes, of which only the last counts. */
  async function longJournal(changes: number): Promise<{ path: string; state: unknown }> {
    const path = newPath()
    const { journal, ledger } = await openLedger(path)
    const steps = fc.sample(fc.array(step, { minLength: 40, maxLength: 40 }), { seed: 7, numRuns: 1 })[0] ?? []
    for (const record of recordsOf(steps.map((one) => ({ ...one, laterMs: 1 })))) await journal.append(record)
    await Promise.all(Array.from({ length: changes }, (_, index) => journal.append(conditions(index))))
    await journal.close()
    return { path, state: stateOf(ledger) }
  }

  test('replaces the file at the next opening after a thousand records too many, and only then', async () => {
    const { path, state } = await longJournal(1_500)
    const before = statSync(path)
    const second = await openLedger(path)
    expect(stateOf(second.ledger)).toEqual(state)
    const after = statSync(path)
    expect(after.size).toBeLessThan(before.size / 4)
    expect(after.mode & 0o777).toBe(0o600)
    await second.journal.append(conditions(9))
    await second.journal.close()
    const third = await openLedger(path)
    await third.journal.close()
    expect(third.ledger.conditions.clockAheadMs).toBe(9)
    expect(stateOf(third.ledger)).toEqual({ ...(state as object), conditions: conditions(9) })
    expect(statSync(path).ino).toBe(after.ino)
    expect(existsSync(`${path}.new`)).toBe(false)
  })

  test('is not written for a file that is short enough', async () => {
    const { path } = await longJournal(900)
    const before = readFileSync(path)
    await (await openLedger(path)).journal.close()
    expect(readFileSync(path)).toEqual(before)
  })

  test.each([
    { title: 'when the file is not rewritten', changes: 10 },
    { title: 'when the file is rewritten', changes: 1_500 },
  ])('left unfinished in a ".new" file by a crash is harmless $title', async ({ changes }) => {
    const { path, state } = await longJournal(changes)
    writeFileSync(`${path}.new`, '00000000 [{"journal":"a node"}]\n00000000 [{"t":"tot')
    const { journal, ledger } = await openLedger(path)
    await journal.append(conditions(77))
    await journal.close()
    const again = await openLedger(path)
    await again.journal.close()
    expect(ledger.conditions.clockAheadMs).toBe(77)
    expect(stateOf(again.ledger)).toEqual({ ...(state as object), conditions: conditions(77) })
  })

  test('left unfinished by a crash of the very first start is harmless, too', async () => {
    const path = newPath()
    writeFileSync(`${path}.new`, '0000')
    expect(await recordsIn(path)).toEqual([])
  })
})

describe('a full disk', () => {
  let hub: TestHub
  let payer: TestNode
  let payee: TestNode

  beforeAll(async () => {
    ;({ hub, payer, payee } = await startNetwork())
  })

  /** A node whose files cannot grow beyond 64 KiB, which looks like a full disk. */
  async function startLimited(node: TestNode): Promise<TestNode> {
    node.port = await freePort()
    node.daemon = new Daemon({
      args: [`--http-bind-port=${node.port}`],
      env: { PHOENIX_DATADIR: node.dataDir },
      wrapper: ['bash', '-c', 'ulimit -Sf 64; exec "$@"', '_'],
    })
    node.nodeId = (await node.daemon.printed(/nodeid: (\w+)/))[1] ?? ''
    node.controlPort = Number((await node.daemon.printed(/controls on http:\/\/[^:]+:(\d+)/))[1])
    await node.daemon.printed(/listening on http/)
    return node
  }

  const giveRoom = (node: TestNode): void => {
    execFileSync('prlimit', ['--pid', String(node.daemon.child.pid), '--fsize=unlimited'])
  }

  /** Writes until not even the shortest record fits. Returns the acknowledged invoices. */
  async function fill(node: TestNode): Promise<string[]> {
    const acknowledged: string[] = []
    for (;;) {
      const answer = await node.post('/createinvoice', { description: 'x'.repeat(128), amountSat: 1 })
      if (answer.status !== 200) break
      acknowledged.push(answer.json().paymentHash)
    }
    while ((await node.control('clock', { advanceSeconds: 0 })).status === 200);
    return acknowledged
  }

  test('createinvoice returns 500, everything else works, it recovers once there is space, and no acknowledged invoice is lost', async () => {
    const node = await startLimited(new TestNode())
    const acknowledged = await fill(node)
    expect(acknowledged.length).toBeGreaterThan(20)

    const refused = await node.post('/createinvoice', { description: 'no room' })
    expect([refused.status, refused.text]).toEqual([500, 'cannot write the journal: file too large'])
    expect(refused.headers['content-type']).toBe('text/plain; charset=UTF-8')
    const controls = await node.control('fund', { amountSat: 1 })
    expect([controls.status, controls.json()]).toEqual([503, { error: 'cannot write the journal: file too large' }])
    expect((await node.get('/getinfo')).status).toBe(200)
    expect(await node.balance()).toEqual({ balanceSat: 0, feeCreditSat: 0 })
    expect((await node.incoming(acknowledged[0] ?? '')).isPaid).toBe(false)
    expect((await node.get('/payments/incoming?all=true&limit=-1')).json()).toHaveLength(acknowledged.length)

    giveRoom(node)
    const { paymentHash } = await node.invoice({ description: 'room again' })
    await node.daemon.kill('SIGKILL')
    await node.start()
    const there = (await node.get('/payments/incoming?all=true&limit=-1')).json()
    const hashes = there.map((one: { paymentHash: string }) => one.paymentHash)
    expect(hashes.toSorted()).toEqual([...acknowledged, paymentHash].toSorted())
  })

  test('concurrent requests that do not fit are all refused, and none of them appears later', async () => {
    const node = await startLimited(new TestNode())
    const answers = await Promise.all(
      Array.from({ length: 120 }, () => node.post('/createinvoice', { description: 'x'.repeat(128) })),
    )
    const good = answers.filter(({ status }) => status === 200).map((answer) => answer.json().paymentHash)
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, 500]))
    await node.daemon.kill('SIGKILL')
    await node.start()
    const there = (await node.get('/payments/incoming?all=true&limit=-1')).json()
    expect(there.map((one: { paymentHash: string }) => one.paymentHash).toSorted()).toEqual(good.toSorted())
  })

  test('of the payee: to the payer it looks offline, and no money moves; with space, the same invoice can be paid', async () => {
    const full = await startLimited(new TestNode({ hub }))
    const invoice = await full.invoice({ amountSat: 100 })
    await fill(full)
    const before = (await payer.state()).balanceMsat
    const reason = 'recipient node is offline or unreachable'
    expect(await payer.pay(invoice.serialized)).toEqual({ paymentHash: invoice.paymentHash, reason })
    expect([(await payer.state()).balanceMsat, (await full.state()).balanceMsat]).toEqual([before, 0])
    expect((await full.incoming(invoice.paymentHash)).isPaid).toBe(false)
    giveRoom(full)
    expect(await payer.pay(invoice.serialized)).toHaveProperty('paymentPreimage')
    expect((await full.state()).balanceMsat).toBe(100_000)
  })

  test('of the payer before it starts: the payment is refused with a 500 and nothing moves', async () => {
    const full = await startLimited(new TestNode({ hub }))
    await hub.fund(full, 1000)
    const invoice = await payee.invoice({ amountSat: 100 })
    await fill(full)
    const answer = await full.post('/payinvoice', { invoice: invoice.serialized })
    expect([answer.status, answer.text]).toEqual([500, 'cannot write the journal: file too large'])
    expect((await full.state()).balanceMsat).toBe(1_000_000)
    expect((await payee.incoming(invoice.paymentHash)).isPaid).toBe(false)
    giveRoom(full)
    expect(await full.pay(invoice.serialized)).toHaveProperty('paymentPreimage')
  })

  test('of the hub while it pays for a customer: the customer waits, and gets the preimage as soon as there is space', async () => {
    const size = (): number => statSync(join(hub.dataDir, 'hub.db')).size
    const pay = async (invoice: string): Promise<any> => (await hub.post('/pay', { invoice })).json()
    const newInvoice = () => payee.invoice({ amountSat: 100 })
    const before = size()
    await pay((await newInvoice()).serialized)
    const needed = size() - before
    const { serialized, paymentHash } = await newInvoice()
    const setLimit = (bytes: string): unknown =>
      execFileSync('prlimit', ['--pid', String(hub.daemon.child.pid), `--fsize=${bytes}:unlimited`])
    // The record of the attempt fits, that of its end does not.
    setLimit(String(size() + needed - 1))
    const paying = pay(serialized)
    await hub.daemon.printed(/cannot write the journal: file too large; trying again/)
    expect((await payee.incoming(paymentHash)).isPaid).toBe(true)
    setLimit('unlimited')
    const { preimage } = await payee.incoming(paymentHash)
    expect([await paying, await pay(serialized)]).toEqual([
      { paymentHash, preimage },
      { paymentHash, preimage },
    ])
  })

  test('of the payer while its payment completes: it stays pending, and is paid as soon as there is space', async () => {
    const full = await startLimited(new TestNode({ hub }))
    await hub.fund(full, 1000)
    const invoice = await payee.invoice({ amountSat: 100 })
    await full.control('payments', { payments: 'hold' })
    const paying = full.pay(invoice.serialized)
    const row = async (): Promise<any> => (await full.get(`/payments/outgoingbyhash/${invoice.paymentHash}`)).json()
    await eventually(async () => (await full.state()).pendingMsat > 0, 'the payment to be pending')
    await fill(full)
    await full.control('payments', { payments: 'normal' })
    await eventually(async () => (await payee.incoming(invoice.paymentHash)).isPaid, 'the payee to be paid')
    await eventually(
      () => /cannot write the journal: file too large/.test(readFileSync(join(full.dataDir, 'phoenix.log'), 'utf8')),
      'the end to find no room',
    )
    expect(await row()).toMatchObject({ isPaid: false })
    expect(await row()).not.toHaveProperty('completedAt')
    expect((await full.state()).balanceMsat).toBe(1_000_000 - 104_400)
    giveRoom(full)
    expect(await paying).toMatchObject({ recipientAmountSat: 100, paymentHash: invoice.paymentHash })
    expect(await row()).toMatchObject({ isPaid: true })
    expect((await full.state()).balanceMsat).toBe(1_000_000 - 104_400)
  })
})
