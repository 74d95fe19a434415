import type { Measurement } from "./results.ts"

export type BenchmarkContext = {
  /** Few rounds: to see that it works, not to learn a figure. */
  readonly quick: boolean
  /** Tells the person who waits what happens now. */
  readonly say: (text: string) => void
}

/** Measures one thing. @throws when the measurement itself fails: a missing figure is never left out silently */
export type Benchmark = (
  context: BenchmarkContext,
) => Promise<Omit<Measurement, "requirement" | "takenAt" | "machine" | "load">>
