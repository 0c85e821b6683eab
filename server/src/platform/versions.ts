/** Compares versions up to the first "-", which is followed by a commit. */
export function sameVersion(a: string | null, b: string): boolean {
  return a?.split('-')[0] === b.split('-')[0]
}
