/** For limits on the cost of a computation: unlike elapsed time, CPU time does not depend on what else the machine is doing. */
export function cpuMsSince(start: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(start)
  return (user + system) / 1000
}
