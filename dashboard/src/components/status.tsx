import {
  IconAlertTriangle,
  IconChecks,
  IconCircleCheck,
  IconClock,
  IconClockOff,
  IconCoins,
  IconLoader2,
  IconPlayerPause,
  IconPlayerStop,
  type TablerIcon,
} from '@tabler/icons-react'
import type { DashboardNode, Delivery, GatewayPayment, Webhook } from '../api/types.ts'
import { gotNothingAt } from '../text/payments.ts'
import { useIsAfter } from './time.tsx'

type Tone = 'good' | 'busy' | 'idle' | 'bad' | 'warn'

/** One word, color and icon per status. The word alone must be enough: not everyone sees the color and icon. */
export function Status({ word, tone, icon: Icon }: { word: string; tone: Tone; icon: TablerIcon }) {
  return (
    <span className={`status status-${tone}`}>
      <Icon size={15} aria-hidden />
      {word}
    </span>
  )
}

type Look = [word: string, tone: Tone, icon: TablerIcon]
type Shown = Pick<DashboardNode, 'status' | 'operation' | 'isSilent'>

const NODE: Record<DashboardNode['status'], Look> = {
  provisioning: ['Provisioning', 'busy', IconLoader2],
  ready: ['Ready', 'good', IconCircleCheck],
  stopped: ['Stopped', 'idle', IconPlayerStop],
  failed: ['Failed', 'bad', IconAlertTriangle],
}

const SILENT: Look = ['Not responding', 'warn', IconAlertTriangle]

const OPERATION: Record<string, string> = {
  start: 'Starting',
  stop: 'Stopping',
  restart: 'Restarting',
  update: 'Updating',
  delete: 'Deleting',
}

/** During an operation the status keeps its old value, so show the operation instead. */
function lookOf({ status, operation, isSilent }: Shown): Look {
  const word = operation && OPERATION[operation]
  if (word) return [word, 'busy', IconLoader2]
  return isSilent ? SILENT : NODE[status]
}

export const nodeWord = (node: Shown): string => lookOf(node)[0]

export function NodeStatus({ node }: { node: Shown }) {
  const [word, tone, icon] = lookOf(node)
  return <Status word={word} tone={tone} icon={icon} />
}

type ShownPayment = Pick<GatewayPayment, 'status' | 'settledAt' | 'delivery' | 'heldUntil' | 'releases'>

export function PaymentStatus({ payment }: { payment: ShownPayment }) {
  const gotNothing = useIsAfter(gotNothingAt(payment) ?? Number.POSITIVE_INFINITY)
  if (payment.delivery === 'done') return <Status word="Delivered" tone="good" icon={IconChecks} />
  if (payment.delivery === 'held') return <Status word="Delivering" tone="busy" icon={IconLoader2} />
  // Neither "Settled" nor "Paid": both sound as if all were well.
  if (gotNothing) return <Status word="Paid, got nothing" tone="bad" icon={IconAlertTriangle} />
  if (payment.status === 'paid') return <Status word="Paid" tone="good" icon={IconCircleCheck} />
  if (payment.settledAt !== null) return <Status word="Settled" tone="warn" icon={IconCoins} />
  if (payment.status === 'expired') return <Status word="Expired" tone="idle" icon={IconClockOff} />
  return <Status word="Unpaid" tone="idle" icon={IconClock} />
}

export function WebhookStatus({ webhook }: { webhook: Pick<Webhook, 'enabled' | 'disabledReason' | 'failingSince'> }) {
  const { enabled, disabledReason, failingSince } = webhook
  if (!enabled && disabledReason !== null) return <Status word="Disabled" tone="bad" icon={IconAlertTriangle} />
  if (!enabled) return <Status word="Disabled" tone="idle" icon={IconPlayerPause} />
  if (failingSince !== null) return <Status word="Failing" tone="warn" icon={IconAlertTriangle} />
  return <Status word="Enabled" tone="good" icon={IconCircleCheck} />
}

export function DeliveryBadge({ delivery: { status, attempts } }: { delivery: Pick<Delivery, 'status' | 'attempts'> }) {
  if (status === 'delivered') return <Status word="Delivered" tone="good" icon={IconCircleCheck} />
  if (status === 'failed') return <Status word="Failed" tone="bad" icon={IconAlertTriangle} />
  return <Status word="Pending" tone={attempts.length > 0 ? 'warn' : 'idle'} icon={IconClock} />
}
