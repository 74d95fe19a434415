import { spawnSync } from "node:child_process"

const readNumber = (name: string): number | undefined => {
  const text = process.env[name]
  if (text === undefined || text === "") return undefined
  const value = Number(text)
  if (Number.isFinite(value) && value > 0) return value
  throw new Error(`${name} is '${text}': expected a number above 0`)
}

/** The same seed for one commit, another for the next; 1 without git. */
const seedOfCommit = (): number => {
  const { stdout } = spawnSync("git", ["-C", import.meta.dirname, "rev-parse", "HEAD"], { encoding: "utf8" })
  return Number.parseInt((stdout ?? "").slice(0, 7), 16) || 1
}

/** The seed of all random values in tests; set by `BATON_SEED`. */
export const SEED = readNumber("BATON_SEED") ?? seedOfCommit()

/** Multiplies the number of random cases: 1 in every run, 10 at night. Set by `BATON_EFFORT`. */
export const EFFORT = readNumber("BATON_EFFORT") ?? 1

/** The variables that give the same random values again. */
export const REPLAY = `BATON_SEED=${SEED}${EFFORT === 1 ? "" : ` BATON_EFFORT=${EFFORT}`}`

/** Scales a count to the effort; at least one. */
export const runs = (count: number): number => Math.max(1, Math.round(count * EFFORT))
