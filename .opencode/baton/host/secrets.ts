import { cutText, onOneLine } from "./text.ts"

/** The first line of a private key; the lines after it look like any other base64. */
const PRIVATE_KEY = /-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----/

/**
 * Patterns of secrets from their issuers' documentation: a fixed prefix and an alphabet. Sorted by issuer; a new one needs a
 * line here and a line in the test.
 */
export const SECRET_RULES: readonly { readonly id: string; readonly pattern: RegExp }[] = [
  { id: "1password-service-token", pattern: /\bops_eyJ[\w+/=-]{50,}/ },
  { id: "age-secret-key", pattern: /\bAGE-SECRET-KEY-1[02-9AC-HJ-NP-Z]{58}/ },
  { id: "anthropic-key", pattern: /\bsk-ant-[\w-]{20,}/ },
  { id: "atlassian-token", pattern: /\bATATT3[\w=-]{60,}/ },
  { id: "aws-access-key", pattern: /\b(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b/ },
  { id: "azure-client-secret", pattern: /\b[\w~.]{3}\dQ~[\w~.-]{31,34}/ },
  { id: "bearer-header", pattern: /\b(?:Bearer|Basic) [A-Za-z0-9+/_.=-]{16,}/ },
  { id: "cloudflare-origin-key", pattern: /\bv1\.0-[0-9a-f]{24}-[0-9a-f]{100,}/ },
  { id: "databricks-token", pattern: /\bdapi[0-9a-f]{32}\b/ },
  { id: "digitalocean-token", pattern: /\bdo[opr]_v1_[0-9a-f]{64}\b/ },
  { id: "discord-webhook", pattern: /discord(?:app)?\.com\/api\/webhooks\/\d+\/[\w-]{40,}/ },
  { id: "docker-token", pattern: /\bdckr_(?:pat|oat)_[\w-]{20,}/ },
  { id: "doppler-token", pattern: /\bdp\.(?:pt|st|ct|sa|scim|audit)\.[\w.-]{40,}/ },
  { id: "facebook-token", pattern: /\bEAA[A-Za-z0-9]{60,}/ },
  { id: "figma-token", pattern: /\bfig[dou]_[\w-]{30,}/ },
  { id: "fly-token", pattern: /\bfo1_[\w-]{40,}|\bFlyV1 fm\d_[\w+/=,-]{40,}/ },
  { id: "github-token", pattern: /\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_\w{40,})/ },
  { id: "gitlab-token", pattern: /\bgl(?:pat|dt|rt|cbt|ptt|ft|imt|agent|soat|oas)-[\w-]{20,}/ },
  { id: "google-api-key", pattern: /\bAIza[\w-]{35}/ },
  { id: "google-oauth-secret", pattern: /\bGOCSPX-[\w-]{28}|\bya29\.[\w-]{30,}/ },
  { id: "grafana-token", pattern: /\bgl(?:c|sa)_[A-Za-z0-9+/_=]{32,}/ },
  { id: "groq-key", pattern: /\bgsk_[A-Za-z0-9]{20,}/ },
  { id: "hashicorp-vault-token", pattern: /\bhv[bsr]\.[\w-]{24,}/ },
  { id: "heroku-key", pattern: /\bHRKU-[\w-]{36,}/ },
  { id: "hugging-face-token", pattern: /\b(?:hf|api_org)_[A-Za-z0-9]{30,}/ },
  { id: "json-web-token", pattern: /(?<![\w-])eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}/ },
  { id: "linear-key", pattern: /\blin_(?:api|oauth)_[A-Za-z0-9]{32,}/ },
  { id: "mailchimp-key", pattern: /\b[0-9a-f]{32}-us\d{1,2}\b/ },
  { id: "mailgun-key", pattern: /\bkey-[0-9a-f]{32}\b/ },
  { id: "new-relic-key", pattern: /\bNR(?:AK|JS|II)-[\w-]{19,}/ },
  { id: "notion-token", pattern: /\b(?:ntn_[A-Za-z0-9]{40,}|secret_[A-Za-z0-9]{43})\b/ },
  { id: "npm-token", pattern: /\bnpm_[A-Za-z0-9]{36}\b/ },
  { id: "openai-key", pattern: /\bsk-(?:proj-|svcacct-|admin-)?[\w-]{20,}/ },
  { id: "planetscale-token", pattern: /\bpscale_(?:tkn|pw|oauth)_[\w.=-]{32,}/ },
  { id: "postman-key", pattern: /\bPMAK-[0-9a-f]{24}-[0-9a-f]{34}\b/ },
  { id: "private-key", pattern: PRIVATE_KEY },
  { id: "pypi-token", pattern: /\bpypi-AgE[\w-]{50,}/ },
  { id: "sendgrid-key", pattern: /\bSG\.[\w-]{20,24}\.[\w-]{39,50}/ },
  { id: "sentry-token", pattern: /\bsntry[su]_[\w+/=]{40,}/ },
  { id: "shopify-token", pattern: /\bshp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}\b/ },
  { id: "slack-token", pattern: /\bxox[abeoprs]-[\w-]{10,}|\bxapp-\d-[\w-]{20,}/ },
  { id: "slack-webhook", pattern: /hooks\.slack\.com\/(?:services|workflows)\/[\w/-]{20,}/ },
  { id: "square-token", pattern: /\b(?:EAAA|sq0[a-z]{3}-)[\w-]{22,}/ },
  { id: "stripe-key", pattern: /\b(?:sk|rk|pk)_(?:test|live|prod)_[A-Za-z0-9]{10,}|\bwhsec_[A-Za-z0-9+/=]{24,}/ },
  { id: "telegram-token", pattern: /(?<!\d)\d{6,12}:AA[\w-]{33}/ },
  { id: "twilio-key", pattern: /\b(?:SK|AC)[0-9a-f]{32}\b/ },
  { id: "url-with-password", pattern: /\b[a-z][a-z0-9+.-]{1,20}:\/\/[^\s/:@]*:[^\s/@]{3,}@/i },
  { id: "xai-key", pattern: /\bxai-[A-Za-z0-9]{20,}/ },
]

/**
 * Matches a value with a telling name, as in `password: hunter2` or "the password is hunter2". It starts at the name itself, and
 * each repetition has a bound: one that runs back or on to the end of a word takes the square of a text's length.
 */
const NAMED_SECRET =
  /(?:password|passwd|passphrase|secret|api[_-]?key|access[_-]?key|auth[_-]?token|token|credentials?|private[_-]?key|(?<![A-Za-z0-9])(?:pwd|pin|pass))["'`]?\s{0,20}(?:=>?|:=?|\bis(?: now)?\b(?! (?:not|an?|the|in|on|for|from|wrong|invalid|required|missing|too|used|stored|never|always|only|read|set|ok|fine)\b))\s{0,20}["'`]?(?=\S{0,200}[\d!@#$%^&*_+=-])(?!\$\{|\$\(|<|process\.|env\.|os\.)[^\s"'`,;]{4}/i

/** A quoted value of more than one word. */
const QUOTED_WORDS =
  /["'](?:password|passwd|passphrase|secret)["']\s{0,4}:\s{0,4}(?:"[^"\n ]{1,200} [^"\n]|'[^'\n ]{1,200} [^'\n])/i

const NAMES =
  "(?:password|passwd|passphrase|secret|api[_-]?key|access[_-]?key|account[_-]?key|auth[_-]?token|access[_-]?token|private[_-]?key|token)"

/** A word or a quotation of a shell's that is no variable. */
const WORD = String.raw`(?!"?\$[\w{(])(?:"[^"\n]{1,200}"|'[^'\n]{1,200}'|[^\s"']{1,200})`
const OPTION = String.raw`(?<![\w-])--[a-z-]{0,40}${NAMES}`
const USER_OPTION = String.raw`(?<![\w-])(?:-u|--user|--proxy-user)`
const OF_CURL = String.raw`(?<=\b(?:curl|wget|https?)\s[^\n|;]{0,200})`
const OF_MYSQL = String.raw`(?<=\b(?:mysql(?:dump|admin|import|show)?|mariadb(?:-dump|-admin)?)\s[^\n|;&]{0,200})`

/** Secrets in commands, headers and addresses; the first group is kept. */
const IN_COMMANDS: readonly RegExp[] = [
  new RegExp(String.raw`(${OPTION} {1,4}["']?)(?=[^\s"']{0,200}\d)[^\s"'-][^\s"']{3,}`, "gi"),
  new RegExp(String.raw`(${OPTION}[ =]{1,4}")(?!\$)[^"\n]{4,200}(?=")`, "gi"),
  new RegExp(String.raw`(${OPTION}[ =]{1,4}')[^'\n]{4,200}(?=')`, "gi"),
  new RegExp(String.raw`(${USER_OPTION}${OF_CURL}[ =]{0,2}[^\s:"'$]{1,100}:)(?!\$)[^\s"']{1,200}`, "g"),
  new RegExp(String.raw`(${USER_OPTION}${OF_CURL}[ =]{0,2}"[^\s:"'$]{1,100}:)(?!\$)[^"\n]{1,200}(?=")`, "g"),
  new RegExp(String.raw`(${USER_OPTION}${OF_CURL}[ =]{0,2}'[^\s:"']{1,100}:)[^'\n]{1,200}(?=')`, "g"),
  // With other programs it may be `user:group`, or a place as in `main:src/a.ts`.
  new RegExp(
    String.raw`(${USER_OPTION}[ =]["']?[\w.@+-]{1,100}:)(?=[^\s"']{0,200}[A-Za-z])(?=[^\s"']{0,200}[\d!@#%^&*+=])[^\s"'/$:]{4,200}(?![^\s"'])`,
    "g",
  ),
  new RegExp(String.raw`(\bsshpass\s{1,4}(?:-[a-z]\s{1,4}){0,3}-p\s{0,4})${WORD}`, "g"),
  new RegExp(String.raw`((?<=\s)-p${OF_MYSQL})(?!\d{1,5}:\d)${WORD}`, "g"),
  /((?:[A-Z0-9]_(?:PASS|PWD)|(?:db|user|admin|root|smtp|mail|ftp|ssh|mysql|pg|redis)_(?:pass|pwd))["']?\s{0,4}[:=]\s{0,4}["']?)(?![/.$])[^\s"',;]{4,200}/g,
  /([?&]sig=)[A-Za-z0-9%+/=_-]{16,}/g,
  /((?:\bcookie: {0,4}|(?<![\w-])--cookie[ =]["']?))[^\s=;"']{1,100}=[^\s;"']{1,4000}(?:; {0,4}[^\s=;"']{1,100}=[^\s;"']{0,4000})*/gi,
  // The key of a Sentry DSN.
  /(\bhttps?:\/\/)[0-9a-f]{32}(?=(?::[^\s@/]{1,64})?@)/g,
]

/** Below this length, random characters cannot be told from words. Git hashes (40 hex) are not secrets. */
const TOKEN = /[A-Za-z0-9+/_=-]{24,}/g
const MIN_ENTROPY_BITS = 4
const GIT_HASH = /^[0-9a-f]{40}$|^[0-9a-f]{64}$/

/** Shannon entropy of a text's characters, in bits per character. */
const entropy = (text: string): number => {
  const counts = new Map<string, number>()
  for (const character of text) counts.set(character, (counts.get(character) ?? 0) + 1)
  return [...counts.values()].reduce((sum, count) => sum - (count / text.length) * Math.log2(count / text.length), 0)
}

/** Random letters and digits in one piece; paths and long names consist of words. */
const isRandom = (token: string): boolean =>
  !GIT_HASH.test(token) &&
  /\d/.test(token) &&
  /[A-Za-z]/.test(token) &&
  (token.match(/[a-z]{4,}|[A-Z]{4,}/g)?.join("").length ?? 0) < token.length / 2 &&
  entropy(token) >= MIN_ENTROPY_BITS

/** Once a private key begins in a text, all its sentences may be part of the key. */
export const holdsPrivateKey = (text: string): boolean => PRIVATE_KEY.test(text)

const SEARCHED_CHARACTERS = 4_000

/**
 * Returns the id of the rule by which the beginning of a text holds a secret; undefined when it holds none. Pure. Linear.
 *
 * In doubt a text counts as a secret: a lost sentence costs less than a key in a database.
 *
 * @param characters how many are looked at: more than is shown or stored of any text
 */
export const findSecret = (text: string, characters = SEARCHED_CHARACTERS): string | undefined => {
  const searched = cutText(text, characters)
  const known = SECRET_RULES.find(({ pattern }) => pattern.test(searched))
  if (known) return known.id
  if ([NAMED_SECRET, QUOTED_WORDS, ...IN_COMMANDS].some((pattern) => searched.search(pattern) >= 0))
    return "named-secret"
  return (searched.match(TOKEN) ?? []).some(isRandom) ? "high-entropy" : undefined
}

export const REDACTED = "[redacted]"

/** Rules whose matches hold more than the secret; SURROUNDED has a pattern for each. */
const KEEPS_SURROUNDINGS: ReadonlySet<string> = new Set([
  "bearer-header",
  "private-key",
  "url-with-password",
  "slack-webhook",
])

/** Secrets recognised by their own form, in any surroundings: also shorter and newer ones than the rules above know. */
const SECRETS: readonly RegExp[] = [
  // Up to its end or the end of the text: the part between may contain dashes, as the header of an encrypted key does.
  /-----BEGIN [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----[\s\S]*?(?:-----END [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----|$)/g,
  // OpenAI, Anthropic, OpenRouter and others with the same form of key.
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
  // A JSON web token: three base64url parts; the first decodes to a text that begins with `{"`.
  /(?<![\w-])eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?/g,
  ...SECRET_RULES.filter(({ id }) => !KEEPS_SURROUNDINGS.has(id)).map(
    ({ pattern }) => new RegExp(pattern, `${pattern.flags}g`),
  ),
]

/** Secrets recognised by their surroundings; the first group is kept. */
const SURROUNDED: readonly RegExp[] = [
  /(\b(?:bearer|basic) {1,4})[A-Za-z0-9._~+/=-]{8,}/gi,
  /(\b[a-z][a-z0-9+.-]{1,20}:\/\/[^\s:/@]{0,200}:)[^\s@/]{1,200}(?=@)/gi,
  // A quoted secret may contain spaces, commas and quotes of the other kind.
  new RegExp(String.raw`(${NAMES}["']? {0,4}[:=] {0,4}")[^"\n]{4,200}(?=")`, "gi"),
  new RegExp(String.raw`(${NAMES}["']? {0,4}[:=] {0,4}')[^'\n]{4,200}(?=')`, "gi"),
  new RegExp(String.raw`(${NAMES}["']? {0,4}[:=] {0,4}["']?)[^\s"',;]{4,}`, "gi"),
  ...IN_COMMANDS,
]

/** Removes keys of known services, private keys and tokens. Nothing else changes, as `password: string` in a specification. Linear. */
export const redactKeys = (text: string): string =>
  SECRETS.reduce((found, pattern) => found.replace(pattern, REDACTED), text)

/** Removes keys, and passwords in URLs, assignments and options of programs. A secret that looks like an ordinary word stays. Linear. */
export const redact = (text: string): string =>
  SURROUNDED.reduce((found, pattern) => found.replace(pattern, `$1${REDACTED}`), redactKeys(text))

/** The first characters of a text as one line without secrets. What is cut off was looked at, so that no half of a secret stays. */
export const redactedLine = (text: string, characters: number): string =>
  cutText(redact(onOneLine(cutText(text, SEARCHED_CHARACTERS))), characters)
