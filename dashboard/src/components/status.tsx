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
import type { ReactNode } from 'react'
import { gotNothingAt, type Outcome, outcomeOf } from '../../../contract/src/outcome.ts'
import type { DashboardNode, Delivery, GatewayPayment, Webhook } from '../api/types.ts'
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

const PAYMENT: Record<Outcome, Look> = {
  unpaid: ['Unpaid', 'idle', IconClock],
  expired: ['Expired', 'idle', IconClockOff],
  settled: ['Settled', 'warn', IconCoins],
  paid: ['Paid', 'good', IconCircleCheck],
  // Neither "Settled" nor "Paid": both sound as if all were well.
  paid_got_nothing: ['Paid, got nothing', 'bad', IconAlertTriangle],
  delivering: ['Delivering', 'busy', IconLoader2],
  delivered: ['Delivered', 'good', IconChecks],
}

type ShownPayment = Pick<GatewayPayment, 'status' | 'settledAt' | 'delivery' | 'heldUntil' | 'releases'>

export function PaymentStatus({ payment }: { payment: ShownPayment }) {
  const gotNothing = useIsAfter(gotNothingAt(payment) ?? Number.POSITIVE_INFINITY)
  const [word, tone, icon] = PAYMENT[outcomeOf(payment, gotNothing)]
  return <Status word={word} tone={tone} icon={icon} />
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

export function Success({ word, children }: { word: 'Paid' | 'Sent'; children?: ReactNode }) {
  return (
    <div className="paid" data-testid={word.toLowerCase()}>
      <IconCircleCheck size={28} aria-hidden /> {word} {children}
    </div>
  )
}
