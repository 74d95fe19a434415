/**
 * Lets work begin one after the other: the next begins when the one before says so, or has ended.
 *
 * @returns what the work returns
 */
export const createTurns = () => {
  let last: Promise<void> = Promise.resolve()
  return async <T>(work: (next: () => void) => Promise<T>): Promise<T> => {
    const before = last
    let next = (): void => {}
    last = new Promise((resolve) => {
      next = resolve
    })
    await before
    try {
      return await work(next)
    } finally {
      next()
    }
  }
}
