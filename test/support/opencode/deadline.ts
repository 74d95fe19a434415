/**
 * The deadline on this machine for work that takes at most `ms` on an idle one. `BATON_SLOWNESS` tells how many times slower this
 * machine is (default 1); the end-to-end tests measure it when they start.
 */
export const deadline = (ms: number): number => {
  const slowness = Number(process.env.BATON_SLOWNESS || 1)
  if (slowness >= 1) return Math.round(ms * slowness)
  throw new Error(`BATON_SLOWNESS is '${process.env.BATON_SLOWNESS}': expected a number, at least 1`)
}
