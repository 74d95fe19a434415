/**
 * Runs the subjects in turn, A B A B …, `rounds` times, so that a machine that slows down slows all of them.
 *
 * @param subjects each gives one value a round
 * @returns each subject's values in order: those of equal index belong together
 */
export const interleave = async <Name extends string>(
  subjects: Record<Name, (round: number) => Promise<number> | number>,
  rounds: number,
  afterRound: (round: number) => void = () => {},
): Promise<Record<Name, number[]>> => {
  const names = Object.keys(subjects) as Name[]
  const values = Object.fromEntries(names.map((name) => [name, [] as number[]])) as Record<Name, number[]>
  for (let round = 0; round < rounds; round++) {
    for (const name of names) values[name].push(await subjects[name](round))
    afterRound(round + 1)
  }
  return values
}
