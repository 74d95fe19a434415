import { randomBytes } from "node:crypto"

const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
const RANDOM_CHARACTERS = 14
const STAMP = /^prt_([0-9a-f]{12})/
const STAMP_LIMIT = 1n << 48n

const randomText = (): string =>
  [...randomBytes(RANDOM_CHARACTERS)].map((byte) => ALPHABET[byte % ALPHABET.length]).join("")

/** OpenCode's stamp of a moment: milliseconds times 4,096, in 48 bits. */
const stampOf = (ms: number): bigint => (BigInt(ms) * 4_096n) % STAMP_LIMIT

/**
 * Ids for parts that come after the given ones in the same message. OpenCode orders a message's parts by id and refuses
 * one that is used already: `prt_`, 12 hex digits that grow with time, 14 random characters.
 *
 * @param existing ids of the parts that are there
 * @param now epoch ms, for a message whose parts have none of that form
 */
export const nextPartIDs = (existing: readonly string[], count: number, now: number): string[] => {
  // Hex digits of one length sort as the numbers they stand for.
  const last = existing
    .flatMap((id) => STAMP.exec(id)?.[1] ?? [])
    .sort()
    .at(-1)
  const first = last === undefined ? stampOf(now) : BigInt(`0x${last}`) + 1n
  return Array.from({ length: count }, (_, index) => {
    const stamp = (first + BigInt(index)).toString(16).padStart(12, "0")
    return `prt_${stamp}${randomText()}`
  })
}
