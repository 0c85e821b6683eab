/** In the bundle it takes the place of the client's own queue; why, build.mjs says. */
export default function Queue<T>(initial: T[] = []) {
  const members = [...initial]
  return {
    get length(): number {
      return members.length
    },
    push: (member: T): T => {
      members.push(member)
      return member
    },
    shift: (): T | undefined => members.shift(),
    remove: (member: T): T | null => {
      const index = members.indexOf(member)
      if (index === -1) return null
      members.splice(index, 1)
      return member
    },
  }
}
