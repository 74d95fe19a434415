import { NAMED_SECRET, PRIVATE_KEY, SECRET_RULES } from "../host/secrets.ts"

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

/** Tells whether a private key begins in a text; all its sentences may then be part of the key. */
export const holdsPrivateKey = (text: string): boolean => PRIVATE_KEY.test(text)

/**
 * Returns the id of the rule by which a text holds a secret; undefined when it holds none. Pure.
 *
 * When in doubt it is a secret: losing a sentence costs less than a key in a database.
 */
export const findSecret = (text: string): string | undefined => {
  const known = SECRET_RULES.find(({ pattern }) => pattern.test(text))
  if (known) return known.id
  if (NAMED_SECRET.test(text)) return "named-secret"
  return (text.match(TOKEN) ?? []).some(isRandom) ? "high-entropy" : undefined
}
