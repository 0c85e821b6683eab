import type { EventType } from '../../../../contract/src/events.ts'

const PAYMENT = {
  paymentId: 'pay_00000000000000000000',
  nodeId: 'node_00000000000000000000',
  protocol: 'mpp',
  amountSat: 21,
  description: 'A sample',
  resource: 'A sample',
}

/** The data of a sample event: shaped like that of a real one, about things that do not exist. */
export function sampleOf(type: EventType): Record<string, unknown> {
  const [group] = type.split('.')
  if (group === 'payment') return PAYMENT
  if (group === 'node') return { nodeId: PAYMENT.nodeId, name: 'sample' }
  if (group === 'key') return { keyId: 'key_00000000000000000000', name: 'sample' }
  return {}
}
