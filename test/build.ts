import { buildSandboxd } from '../sandboxd/test/build.ts'
import { buildServer } from '../server/test/build.ts'

/** Tests run the very bundles that people run, so they are built before anything else. */
export default async function build(): Promise<void> {
  await buildSandboxd()
  buildServer()
}
