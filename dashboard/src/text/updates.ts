import type { DashboardNode, NodeUpdates } from '../api/types.ts'

type Updated = Pick<DashboardNode, 'status' | 'operation' | 'updateStatus'>

/** The update of a stopped node is done when the node is next started. */
export const waitsForStart = ({ status, operation, updateStatus }: Updated): boolean =>
  updateStatus === 'updating' && status === 'stopped' && (operation === null || operation === 'update')

export const isUpdating = (node: Updated): boolean =>
  (node.updateStatus === 'updating' || node.operation === 'update') && !waitsForStart(node)

/** Whether there is an update that nobody has asked for yet. */
export const hasUpdate = ({ updateAvailable, updateStatus }: Pick<DashboardNode, 'updateAvailable' | 'updateStatus'>): boolean =>
  updateAvailable && updateStatus !== 'updating'

export function softwareSentence(node: Updated, { currentVersion, latestVersion, updateAvailable }: NodeUpdates): string {
  if (isUpdating(node)) return 'The node is being updated. Its payment API is briefly unavailable.'
  // No version is chosen before a node is first started.
  const current = currentVersion === '' ? 'The node has not started yet.' : `Version ${currentVersion}.`
  if (waitsForStart(node))
    return `${current} The update will be installed when the node is next started. Your data is backed up first.`
  if (updateAvailable) return `${current} Version ${latestVersion} is available. Your data is backed up before the update.`
  if (currentVersion === '') return current
  // Some installations cannot update nodes, and a catalog may have only older versions.
  const isLatest = currentVersion.split('-')[0] === latestVersion.split('-')[0]
  return isLatest ? `Version ${currentVersion}, the latest version.` : `${current} No update is available.`
}
