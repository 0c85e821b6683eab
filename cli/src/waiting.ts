export { wasNeverSent, whyUnreachable } from '../../sdk/src/unreachable.ts'
export { pause as sleep } from '../../sdk/src/waiting.ts'
