import { dirname } from 'node:path'
import { expect, test } from 'vitest'
import { files } from './source-graph.ts'

/** How large a file or folder may become. */

const MAX_SOURCE_LINES = 400
const MAX_MEDIAN_LINES = 120
const MAX_TEST_LINES = 600
const MAX_FILES_IN_FOLDER = 20

test(`source files: half of them have at most ${MAX_MEDIAN_LINES} lines`, () => {
  const sorted = files
    .filter(({ isTest }) => !isTest)
    .map(({ lines }) => lines)
    .sort((a, b) => a - b)
  expect(sorted[Math.floor(sorted.length / 2)]).toBeLessThanOrEqual(MAX_MEDIAN_LINES)
})

test(`no source file has more than ${MAX_SOURCE_LINES} lines, no test file more than ${MAX_TEST_LINES}`, () => {
  const large = files.filter(({ isTest, lines }) => lines > (isTest ? MAX_TEST_LINES : MAX_SOURCE_LINES))
  expect(large.map(({ path }) => path)).toEqual([])
})

test(`no folder has more than ${MAX_FILES_IN_FOLDER} files`, () => {
  const counts = new Map<string, number>()
  for (const { path } of files) counts.set(dirname(path), (counts.get(dirname(path)) ?? 0) + 1)
  const large = [...counts].filter(([, count]) => count > MAX_FILES_IN_FOLDER).map(([folder]) => folder)
  expect(large).toEqual([])
})
