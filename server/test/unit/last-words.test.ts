import { expect, test } from 'vitest'
import { lastWordsIn } from '../../src/runtimes/last-words.ts'

const TRACE = `2026-01-01 10:00:00 starting
Exception in thread "main" java.lang.IllegalStateException: cannot open the database
\tat fr.acinq.phoenixd.MainKt.main(Main.kt:12)
\tat java.base/java.lang.Thread.run(Thread.java:840)
Caused by: java.sql.SQLException: [SQLITE_CORRUPT] The database disk image is malformed
\tat org.sqlite.core.DB.newSQLException(DB.java:1179)
\t... 21 more
`

test.each([
  ['nothing', '', 'it left no message'],
  ['only empty lines', '\n \n', 'it left no message'],
  ['a line with a time', 'first\n2026-01-01 10:00:00 the last one\n\n', 'the last one'],
  [
    'B3: a stack trace: its innermost cause',
    TRACE,
    'Caused by: java.sql.SQLException: [SQLITE_CORRUPT] The database disk image is malformed',
  ],
  [
    'B3: a stack trace without a cause',
    'Exception in thread "main" java.lang.OutOfMemoryError: Java heap space\n\tat a.b(C.kt:1)\n',
    'Exception in thread "main" java.lang.OutOfMemoryError: Java heap space',
  ],
  [
    'B3: a stack trace with the diagnostics of coroutines below it',
    `${TRACE}\tSuppressed: kotlinx.coroutines.internal.DiagnosticCoroutineContextException: [Job]\n`,
    'Caused by: java.sql.SQLException: [SQLITE_CORRUPT] The database disk image is malformed',
  ],
  [
    'B3: a stack trace that begins with its message',
    'Address already in use\n\tat sun.nio.ch.Net.bind(Net.java:1)\n',
    'Address already in use',
  ],
  ['B3: a stack trace followed by another line', `${TRACE}http server stopped\n`, 'http server stopped'],
  ['B3: the rest of a long stack trace', '\tat a.b(C.kt:1)\n\t... 21 more\n', '... 21 more'],
  ['control characters', 'a\u001b[31mred\u001b[0m\u0007\u0000 and \u009b1m', 'a [31mred [0m and 1m'],
  ['a long line', 'x'.repeat(1000), 'x'.repeat(200)],
  ['a long line of wide characters', '🙂'.repeat(1000), '🙂'.repeat(200)],
])('%s', (_title, text, words) => expect(lastWordsIn(text)).toBe(words))
