import {
  IconAlertTriangle,
  IconCircleCheck,
  IconClock,
  IconClockOff,
  IconLoader2,
  IconPlayerStop,
  type TablerIcon,
} from '@tabler/icons-react'
import type { DashboardNode, GatewayPayment } from '../api-types.ts'

type Tone = 'good' | 'busy' | 'idle' | 'bad' | 'warn'

/** One word, colour and icon for each state, everywhere. The word alone must do: colour and icon are for those who see them. */
export function Status({ word, tone, icon: Icon }: { word: string; tone: Tone; icon: TablerIcon }) {
  return (
    <span className={`status status-${tone}`}>
      <Icon size={15} aria-hidden />
      {word}
    </span>
  )
}

const NODE: Record<DashboardNode['status'], [word: string, tone: Tone, icon: TablerIcon]> = {
  provisioning: ['Provisioning', 'busy', IconLoader2],
  ready: ['Ready', 'good', IconCircleCheck],
  stopped: ['Stopped', 'idle', IconPlayerStop],
  failed: ['Failed', 'bad', IconAlertTriangle],
}

const OPERATION: Record<string, string> = {
  start: 'Starting',
  stop: 'Stopping',
  restart: 'Restarting',
  update: 'Updating',
  delete: 'Deleting',
}

/** While an operation runs the status keeps its old value, so that the operation is what a person wants to know. */
export function nodeWord(node: Pick<DashboardNode, 'status' | 'operation'>): string {
  return (node.operation && OPERATION[node.operation]) || NODE[node.status][0]
}

export function NodeStatus({ node }: { node: Pick<DashboardNode, 'status' | 'operation'> }) {
  const [word, tone, icon] = NODE[node.status]
  const operation = node.operation && OPERATION[node.operation]
  return operation ? <Status word={operation} tone="busy" icon={IconLoader2} /> : <Status word={word} tone={tone} icon={icon} />
}

export function PaymentStatus({ payment }: { payment: Pick<GatewayPayment, 'status' | 'settledAt'> }) {
  if (payment.status === 'paid') return <Status word="Paid" tone="good" icon={IconCircleCheck} />
  if (payment.settledAt !== null) return <Status word="Settled" tone="warn" icon={IconClock} />
  if (payment.status === 'expired') return <Status word="Expired" tone="idle" icon={IconClockOff} />
  return <Status word="Unpaid" tone="busy" icon={IconClock} />
}
