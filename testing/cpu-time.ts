/** For bounds on what a computation may cost: unlike elapsed time, it does not depend on what else the machine is doing. */
export function cpuMsSince(start: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(start)
  return (user + system) / 1000
}
