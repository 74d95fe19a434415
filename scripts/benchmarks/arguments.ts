import { BENCHMARKS, type BenchmarkName } from "./results.ts"

export type Arguments =
  | { kind: "run"; names: readonly BenchmarkName[]; quick: boolean }
  | { kind: "help" }
  | { kind: "wrong"; reason: string }

const isBenchmark = (text: string): text is BenchmarkName => (BENCHMARKS as readonly string[]).includes(text)

/** Reads `[NAME …] [--quick] [--help]`; no name means all. */
export const parseArguments = (argv: readonly string[]): Arguments => {
  if (argv.includes("--help") || argv.includes("-h")) return { kind: "help" }
  const words = argv.filter((argument) => argument !== "--quick")
  const names = words.filter(isBenchmark)
  const wrong = words.find((word) => !isBenchmark(word))
  if (wrong !== undefined) {
    return { kind: "wrong", reason: `unknown argument ${wrong}; expected --quick, --help or: ${BENCHMARKS.join(" ")}` }
  }
  const chosen = names.length === 0 ? BENCHMARKS : BENCHMARKS.filter((name) => names.includes(name))
  return { kind: "run", names: chosen, quick: argv.includes("--quick") }
}
