import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { newId } from '../../../src/platform/ids.ts'
import { nextClaimName, snapshotName } from '../../../src/runtimes/kubernetes/copy-names.ts'
import { volumeName } from '../../../src/runtimes/kubernetes/moving/volume-objects.ts'
import { claimOf, labelOf, nodeIdOf, nodeName, podName, secretName } from '../../../src/runtimes/kubernetes/objects.ts'

/** The API server accepts no other name. */
const OBJECT_NAME = /^(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/
/** The name of a StatefulSet becomes part of labels and of host names, with a suffix of at most 11 characters. */
const MAX_LABEL = 63
const MAX_SUFFIX = 11

const CLAIMS = ['n-a', 'n-a-r1', 'n-a-r2', 'n-b']
/** What NODE_VERSIONS accepts, mostly of characters that names do not allow or that separate their parts. */
const versions = fc.oneof(
  fc.string({ unit: fc.constantFrom(...'aA10._+-'), minLength: 1, maxLength: 8 }),
  fc.string({ unit: fc.constantFrom('r1', '-', '.', '_', 'a', '--', '1.0.0'), minLength: 1, maxLength: 6 }),
  fc.string({ unit: fc.constantFrom('a', 'A', '-', '.', 'r1-'), minLength: 90, maxLength: 260 }),
)
const copies = fc.record({ claim: fc.constantFrom(...CLAIMS), version: versions })
const nameOf = ({ claim, version }: { claim: string; version: string }): string => snapshotName(claim, version)

describe('C25: the name of a copy', () => {
  test('C25: is that of no other version and no other claim', () => {
    fc.assert(
      fc.property(fc.uniqueArray(copies, { selector: ({ claim, version }) => `${claim} ${version}`, minLength: 2 }), (all) => {
        expect(new Set(all.map(nameOf)).size).toBe(all.length)
      }),
      { numRuns: 3_000 },
    )
  })

  test.each<[string, [claim: string, version: string][]]>([
    [
      'differ in a character that names do not allow',
      [
        ['n-a', '1.0.0-build'],
        ['n-a', '1.0.0+build'],
        ['n-a', '1.0.0_build'],
        ['n-a', '1.0.0-Build'],
        ['n-a', '1.0.0--build'],
      ],
    ],
    [
      'differ at the end',
      [
        ['n-a', '1.0'],
        ['n-a', '1.0.'],
        ['n-a', '1.0-'],
        ['n-a', '1.0._'],
      ],
    ],
    [
      'have nothing that names allow',
      [
        ['n-a', '+'],
        ['n-a', '_'],
        ['n-a', '.'],
      ],
    ],
    [
      'look like the number of a restored claim',
      [
        ['n-a', 'r1-1.0.0'],
        ['n-a-r1', '1.0.0'],
      ],
    ],
    [
      'are as long as a name, and differ only at the end',
      [
        ['n-a', `1.${'0'.repeat(250)}1`],
        ['n-a', `1.${'0'.repeat(250)}2`],
      ],
    ],
    [
      'are long and repeat the number of a restored claim',
      [
        ['n-a', 'r1-'.repeat(90)],
        ['n-a-r1', 'r1-'.repeat(90)],
      ],
    ],
  ])('C25: is different for versions that %s', (_what, all) => {
    expect(new Set(all.map(([claim, version]) => snapshotName(claim, version))).size).toBe(all.length)
  })

  test('C25: is always a valid name', () => {
    fc.assert(fc.property(copies, (copy) => OBJECT_NAME.test(nameOf(copy))))
  })

  test('C25: stays the same from release to release', () => {
    expect(snapshotName('n-a', '0.8.0')).toBe('n-a-0.8.0')
    expect(snapshotName('n-a-r1', '0.8.0')).toBe('n-a-r1-0.8.0')
    expect(snapshotName('n-a', '0.8.0-3f2a1b9')).toBe('n-a-0.8.0-3f2a1b9')
    expect(snapshotName('n-a', 'v1.0.0-rc.1')).toBe('n-a-v1.0.0-rc.1')
    expect(snapshotName('n-a', 'r1')).toBe('n-a-r1')
    expect(snapshotName('n-a', '1.0.0+Build_7.')).toBe('n-a-1.0.0-build-7--ede7ff88a0fb')
    expect(snapshotName('n-a', '+')).toBe('n-a--efb4f46ef61a')
  })

  test('C25: is the claim and the version wherever an earlier release could make no other copy of that name', () => {
    const earlier = (claim: string, version: string): string =>
      `${claim}-${version.toLowerCase().replace(/[^a-z0-9.]+/g, '-')}`.replace(/[^a-z0-9]+$/, '')
    fc.assert(
      fc.property(copies, ({ claim, version }) => {
        fc.pre(earlier(claim, version) === `${claim}-${version}` && OBJECT_NAME.test(`${claim}-${version}`))
        fc.pre(!/^(-|r\d+-)/.test(version))
        expect(snapshotName(claim, version)).toBe(earlier(claim, version))
      }),
    )
  })
})

test('C25: each restored claim has the next number', () => {
  expect([nextClaimName('n-a'), nextClaimName('n-a-r1'), nextClaimName('n-a-r9')]).toEqual(['n-a-r1', 'n-a-r2', 'n-a-r10'])
})

describe('the objects of a node', () => {
  const ids = fc.integer({ min: 0, max: 2 ** 42 - 1 }).map((time) => newId('node', time))
  const restored = (id: string, times: number): string =>
    Array.from({ length: times }).reduce<string>((name) => nextClaimName(name), nodeName(id))
  const namesOf = (id: string): Record<string, string[]> => ({
    statefulSets: [nodeName(id), volumeName(id)],
    pods: [podName(id), `${volumeName(id)}-0`],
    secrets: [0, 1, 2, 11].map((number) => secretName(id, number)),
    claims: [0, 1, 2, 11].map((times) => restored(id, times)),
  })

  test('have names of their own, for every id that the service makes', () => {
    fc.assert(
      fc.property(fc.uniqueArray(ids, { minLength: 2, maxLength: 5 }), (all) => {
        for (const kind of ['statefulSets', 'pods', 'secrets', 'claims']) {
          const names = all.flatMap((id) => namesOf(id)[kind] ?? [])
          expect(new Set(names).size).toBe(names.length)
          for (const name of names) {
            expect(name).toMatch(OBJECT_NAME)
            expect(name.length).toBeLessThanOrEqual(MAX_LABEL - MAX_SUFFIX)
          }
        }
      }),
    )
  })

  test('have a label from which the id is read back', () => {
    const place = { namespace: 'nodes', installation: 'i' }
    fc.assert(
      fc.property(ids, (id) => {
        const { metadata } = claimOf(place, id, nodeName(id), { storageClass: undefined, storageSize: '1Gi' })
        expect(nodeIdOf(metadata)).toBe(id)
        expect(labelOf(id)).toMatch(/^[a-z0-9]{1,63}$/)
      }),
    )
  })
})
