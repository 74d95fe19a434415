export const REDACTED = "[redacted]"

/** What stands for itself: whatever surrounds it, it is a secret. */
const SECRETS: readonly RegExp[] = [
  // To its end or the text's: what stands in between may have dashes of its own, as the header of an encrypted one.
  /-----BEGIN [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----[\s\S]*?(?:-----END [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----|$)/g,
  // OpenAI, Anthropic, OpenRouter and whoever writes keys the same way.
  /\bsk-[A-Za-z0-9_-]{16,}/g,
  /\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,})/g,
  /\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/g,
  /\bAIza[A-Za-z0-9_-]{30,}/g,
  /\bya29\.[A-Za-z0-9_-]{20,}/g,
  /\b(?:xox[abprse]|xapp)-[A-Za-z0-9-]{10,}/g,
  /(?<=\bhooks\.slack\.com\/services\/)[A-Za-z0-9/_-]{10,}/g,
  /\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}/g,
  /\bAGE-SECRET-KEY-1[A-Z0-9]{20,}/g,
  /\b(?:npm_|pypi-|hf_|dop_v1_|shpat_|[sr]k_live_|[sr]k_test_|whsec_)[A-Za-z0-9_-]{16,}/g,
  // A JSON web token: three base64url parts, the first of which is `{"` when it is read.
  /\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?/g,
]

const NAMES =
  "(?:password|passwd|passphrase|secret|api[_-]?key|access[_-]?key|account[_-]?key|auth[_-]?token|access[_-]?token|private[_-]?key|token)"

/** What its surroundings tell to be a secret; the first group stays. */
const SURROUNDED: readonly RegExp[] = [
  /(\b(?:bearer|basic) {1,4})[A-Za-z0-9._~+/=-]{8,}/gi,
  /(\b[a-z][a-z0-9+.-]{1,20}:\/\/[^\s:/@]{0,200}:)[^\s@/]{1,200}(?=@)/gi,
  // In quotes a secret may have spaces, commas and quotes of the other kind.
  new RegExp(String.raw`(${NAMES}["']? {0,4}[:=] {0,4}")[^"\n]{4,200}(?=")`, "gi"),
  new RegExp(String.raw`(${NAMES}["']? {0,4}[:=] {0,4}')[^'\n]{4,200}(?=')`, "gi"),
  new RegExp(String.raw`(${NAMES}["']? {0,4}[:=] {0,4}["']?)[^\s"',;]{4,}`, "gi"),
  new RegExp(String.raw`((?<![\w-])--[a-z-]{0,40}${NAMES} {1,4}["']?)(?=[^\s"']*\d)[^\s"'-][^\s"']{3,}`, "gi"),
]

/**
 * A text without the secrets that can be told by their look: keys of known services, private keys, tokens, passwords in
 * addresses and assignments. What looks like any other word cannot be told.
 */
export const redact = (text: string): string => {
  const withoutKnown = SECRETS.reduce((found, pattern) => found.replace(pattern, REDACTED), text)
  return SURROUNDED.reduce((found, pattern) => found.replace(pattern, `$1${REDACTED}`), withoutKnown)
}
