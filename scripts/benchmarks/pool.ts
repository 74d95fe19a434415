/** Works on all items, at most `atOnce` at a time, for what is not timed. @returns what came of each, in the items' order */
export const inPool = async <Item, Outcome>(
  items: readonly Item[],
  atOnce: number,
  work: (item: Item) => Promise<Outcome>,
): Promise<Outcome[]> => {
  const outcomes: Outcome[] = []
  const waiting = [...items.entries()]
  const worker = async (): Promise<void> => {
    for (let next = waiting.shift(); next; next = waiting.shift()) outcomes[next[0]] = await work(next[1])
  }
  await Promise.all(Array.from({ length: atOnce }, worker))
  return outcomes
}
