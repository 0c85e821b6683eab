/*
 * Nodes log text that strangers send them, so every expression must run in linear time: each repetition is bounded, or a match cannot begin
 * inside text that was already scanned.
 */

/** Passwords, preimages and keys are 64 hex digits or more. So are hashes and ids, but nothing distinguishes them. */
const HEX = /[0-9a-f]{64,}/gi
const CREDENTIALS = /\b(basic|bearer|l402|lsat)\s+[A-Za-z0-9+/=_.:-]{8,}/gi
/** Unlike "Payment received", a credential is long and not a word. */
const PAYMENT_CREDENTIAL = /\b(Payment)\s+(?=[A-Za-z+/.:-]{0,200}[0-9_=])[A-Za-z0-9+/=_.:-]{16,}/g
const SETTING =
  /(?<![a-z_-])([a-z_-]{0,40}(?:password|passwd|pwd|secret|token|macaroon|seed|mnemonic|preimage|api[_-]?key|private[_-]?key)[a-z_-]{0,40}["']?\s{0,5}[=:]\s{0,5})\S[^\n]*/gi
const URL_PASSWORD = /\/\/[^\s/@]{1,200}@/g
const EXTENDED_KEY = /\b[a-z]prv[1-9A-HJ-NP-Za-km-z]{50,}/g
/** Twelve words in lower case may be a seed: in a line, one per line, numbered, or in JSON. */
const WORDS = /(?<![A-Za-z])[a-z]{3,8}(?:[^A-Za-z]{1,6}[a-z]{3,8}){11,}(?![A-Za-z])/g
// biome-ignore lint/suspicious/noControlCharactersInRegex: terminals and browsers interpret them, so they are removed
const CONTROL = /\u001b\[[0-9;]{0,20}[A-Za-z]|[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g

/** Paths of files and ports of nodes would show how the operator's machine is set up. */
const PATH = /(?<![\w./-])\/(?:[\w.@+-]+\/)+[\w.@+-]*/g
const LOCAL_ADDRESS = /\b(?:https?:\/\/)?(?:127\.0\.0\.1|0\.0\.0\.0|localhost)(?::\d{1,5})?/g

/** The text without anything that may be a secret, or that is about the operator's machine. It hides too much rather than too little. */
export function withoutSecrets(text: string): string {
  return text
    .replace(CONTROL, '')
    .replace(CREDENTIALS, '$1 [hidden]')
    .replace(PAYMENT_CREDENTIAL, '$1 [hidden]')
    .replace(SETTING, '$1[hidden]')
    .replace(URL_PASSWORD, '//[hidden]@')
    .replace(HEX, '[hidden]')
    .replace(EXTENDED_KEY, '[hidden]')
    .replace(WORDS, '[hidden]')
    .replace(PATH, '[path]')
    .replace(LOCAL_ADDRESS, '[address]')
}
