import { spawn } from "node:child_process"
import { collectOutput } from "../../test/support/collect-output.ts"
import type { OpenCodeBinary } from "../../test/support/opencode-binary.ts"

const DEADLINE_MS = 120_000

/**
 * Runs a script in a fresh process of OpenCode's own runtime and reads the JSON document it prints.
 *
 * @throws when it fails or prints no document
 */
export const runAsBun = (binary: OpenCodeBinary, script: string, args: readonly string[]): Promise<unknown> =>
  new Promise((resolve, reject) => {
    const argv = ["--no-env-file", "--config=/dev/null", "run", script, ...args]
    const child = spawn(binary.path, argv, {
      env: { ...process.env, BUN_BE_BUN: "1" },
      stdio: ["ignore", "pipe", "pipe"],
      timeout: DEADLINE_MS,
    })
    const printed = collectOutput(child)
    child.on("error", reject)
    child.on("close", (exitCode) => {
      if (exitCode !== 0) reject(new Error(`${script} exited with ${exitCode}: ${printed.stderr().slice(-500)}`))
      else
        try {
          resolve(JSON.parse(printed.stdout()))
        } catch (cause) {
          reject(new Error(`${script} printed no document: ${printed.stdout().slice(0, 200)}`, { cause }))
        }
    })
  })

/** The number in a field of such a document. */
export const numberIn = (document: unknown, field: string): number => {
  const value: unknown = Reflect.get(Object(document), field)
  if (typeof value !== "number")
    throw new Error(`expected a number in "${field}", received ${JSON.stringify(document)}`)
  return value
}

/** The list of numbers in a field of such a document. */
export const numbersIn = (document: unknown, field: string): number[] => {
  const values: unknown = Reflect.get(Object(document), field)
  if (!Array.isArray(values) || !values.every((value) => typeof value === "number")) {
    throw new Error(`expected numbers in "${field}", received ${JSON.stringify(document).slice(0, 200)}`)
  }
  return values
}
