import type { NodeMaterial, NodeSpec } from '../nodes/runtime.ts'

/** Lines of phoenix.conf that depend on the host, such as the hub and the callback URL. */
export type ConfLines = (material: NodeMaterial) => string[]

/** Contains all three secrets, because phoenixd appends a missing one to the file, which may be read-only. */
export function phoenixConf(node: Pick<NodeSpec, 'autoLiquidity'>, material: NodeMaterial, confLines: ConfLines): string {
  const lines = [
    `http-password=${material.password}`,
    `http-password-limited-access=${material.restrictedPassword}`,
    `webhook-secret=${material.webhookSecret}`,
    `auto-liquidity=${node.autoLiquidity}`,
    ...confLines(material),
  ]
  return `${lines.join('\n')}\n`
}
