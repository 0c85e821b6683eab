import { storedChoice } from '../../stored-choice.ts'

/** Single keys can disturb people who dictate or who press keys by accident, so they can be turned off (WCAG 2.1.4). */
export const shortcuts = storedChoice<'on' | 'off'>('boltyard-shortcuts', ['on', 'off'])

/** After `g`, this key goes to this page. */
export const GO_KEYS = {
  o: { name: 'Overview', path: '/' },
  n: { name: 'Nodes', path: '/nodes' },
  p: { name: 'Payments', path: '/gateway' },
  d: { name: 'Developers', path: '/developers' },
  c: { name: 'Credit', path: '/credit' },
  a: { name: 'Activity', path: '/activity' },
  s: { name: 'Settings', path: '/settings' },
} as const

export const goKeyOf = (path: string): string | undefined => Object.entries(GO_KEYS).find(([, page]) => page.path === path)?.[0]

export type Pressed = Pick<KeyboardEvent, 'key' | 'ctrlKey' | 'metaKey' | 'altKey' | 'isComposing' | 'repeat'>
export type Meaning = { act: 'palette' } | { act: 'help' } | { act: 'search' } | { act: 'go'; path: string }
export type Situation = {
  isTyping: boolean
  /** A dialog may show a secret that is shown only once, so no shortcut may leave it. */
  isInDialog: boolean
  /** Whether single keys are turned on. */
  isOn: boolean
  isApple: boolean
  nowMs: number
}

/** Long enough for people who type with one finger. */
const SECOND_KEY_MS = 1_500

/** Remembers a `g` until the key after it. */
export function keyReader(): (pressed: Pressed, situation: Situation) => Meaning | undefined {
  let goAtMs: number | undefined
  return (pressed, { isTyping, isInDialog, isOn, isApple, nowMs }) => {
    const { key, ctrlKey, metaKey, altKey } = pressed
    const isSecond = goAtMs !== undefined && nowMs - goAtMs <= SECOND_KEY_MS
    goAtMs = undefined
    if (pressed.isComposing || isInDialog) return undefined
    // On a Mac, Control+K deletes the rest of the line in a text field.
    const isCommand = isApple ? metaKey && !ctrlKey : ctrlKey && !metaKey
    if (isCommand && !altKey && key.toLowerCase() === 'k') return { act: 'palette' }
    if (ctrlKey || metaKey || altKey || isTyping || !isOn || pressed.repeat) return undefined
    if (isSecond && Object.hasOwn(GO_KEYS, key)) return { act: 'go', path: GO_KEYS[key as keyof typeof GO_KEYS].path }
    if (key === 'g') goAtMs = nowMs
    if (key === '?') return { act: 'help' }
    return key === '/' ? { act: 'search' } : undefined
  }
}

const FIELDS = 'input, select, textarea, [contenteditable]:not([contenteditable=false]), [role=textbox], [role=combobox]'

export const isTypingIn = (element: Element | null): boolean => element?.closest(FIELDS) != null

export const isApple = (): boolean => /Mac|iPhone|iPad/.test(navigator.platform)
