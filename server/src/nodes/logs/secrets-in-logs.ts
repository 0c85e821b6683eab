/** Passwords, preimages and keys are 64 hex digits or more. So are hashes and ids, but nothing distinguishes them. */
const HEX = /\b[0-9a-f]{64,}\b/gi
const CREDENTIALS = /\b(Basic|Bearer|L402|LSAT|Payment)\s+[A-Za-z0-9+/=_.:-]{8,}/gi
const SETTING = /\b(http-password[a-z-]*|webhook-secret|seed|password|preimage|[a-z-]*token|macaroon)(["']?\s*[=:]\s*)\S[^\n]*/gi
/** Twelve words in lower case may be a seed. */
const WORDS = /\b[a-z]{3,8}(?:[ ,]+[a-z]{3,8}){11,}\b/g
// biome-ignore lint/suspicious/noControlCharactersInRegex: terminals and browsers interpret them, so they are removed
const CONTROL = /\u001b\[[0-9;]*[A-Za-z]|[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g

/** The text without anything that may be a secret. It hides too much rather than too little. */
export function withoutSecrets(text: string): string {
  return text
    .replace(CONTROL, '')
    .replace(CREDENTIALS, '$1 [hidden]')
    .replace(SETTING, '$1$2[hidden]')
    .replace(HEX, '[hidden]')
    .replace(WORDS, '[hidden]')
}
