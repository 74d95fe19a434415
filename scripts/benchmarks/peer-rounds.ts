import { inPool } from "./pool.ts"
import { isPeer, type SubjectName } from "./subjects.ts"

/** Why each subject that could not be measured could not. */
export type Failures = Map<SubjectName, string>

/** What an error of a peer says, without the folders of this run. */
export const reasonOf = (error: unknown): string => {
  const text = error instanceof Error ? error.message : String(error)
  return text
    .replace(/\/\S*\/(?=[^/\s]+)/g, "")
    .replace(/\s+/g, " ")
    .slice(0, 300)
}

/**
 * Work for one subject; what fails for a peer is noted, and that peer is left out from there on.
 *
 * @throws when it fails for Baton or plain OpenCode: without them there is nothing to compare
 */
export const attempt = async <T>(
  name: SubjectName,
  failures: Failures,
  work: () => Promise<T>,
): Promise<T | undefined> => {
  if (failures.has(name)) return undefined
  try {
    return await work()
  } catch (error) {
    if (!isPeer(name)) throw error
    failures.set(name, reasonOf(error))
    return undefined
  }
}

/**
 * Rounds in which each subject has one turn.
 *
 * @param atOnce 1 for what is timed
 * @returns the values of each subject in the order of the rounds; none of one that failed in any
 */
export const measureRounds = async (
  { names, rounds, atOnce }: { names: readonly SubjectName[]; rounds: number; atOnce: number },
  failures: Failures,
  measure: (name: SubjectName) => Promise<number>,
): Promise<Map<SubjectName, number[]>> => {
  const values = new Map<SubjectName, number[]>(names.map((name) => [name, []]))
  for (let round = 0; round < rounds; round++) {
    await inPool(names, atOnce, async (name) => {
      const value = await attempt(name, failures, () => measure(name))
      if (value !== undefined) values.get(name)?.push(value)
    })
  }
  for (const name of failures.keys()) values.delete(name)
  return values
}
