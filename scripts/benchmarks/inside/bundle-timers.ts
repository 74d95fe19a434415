const BUNDLE = "/.opencode/baton/"

/**
 * Counts the timers that wait and that the bundle has started, from now on.
 *
 * Replaces this process's timer functions: whoever calls them from the bundle's files is told by the stack.
 */
export const countBundleTimers = (): (() => number) => {
  const waiting = new Set<unknown>()
  const { setTimeout: startTimeout, setInterval: startInterval } = globalThis
  const { clearTimeout: endTimeout, clearInterval: endInterval } = globalThis
  type Callback = (...args: unknown[]) => void
  const isOurs = (): boolean => new Error().stack?.includes(BUNDLE) === true

  const timeout = (callback: Callback, ms?: number, ...args: unknown[]) => {
    if (!isOurs()) return startTimeout(callback, ms, ...args)
    const timer = startTimeout(() => {
      waiting.delete(timer)
      callback(...args)
    }, ms)
    waiting.add(timer)
    return timer
  }
  const interval = (callback: Callback, ms?: number, ...args: unknown[]) => {
    const timer = startInterval(callback, ms, ...args)
    if (isOurs()) waiting.add(timer)
    return timer
  }
  const ending =
    <Timer>(end: (timer: Timer) => void) =>
    (timer: Timer): void => {
      waiting.delete(timer)
      end(timer)
    }
  Object.assign(globalThis, {
    setTimeout: Object.assign(timeout, startTimeout),
    setInterval: interval,
    clearTimeout: ending(endTimeout),
    clearInterval: ending(endInterval),
  })
  return () => waiting.size
}
