import { readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { promised } from "../requirements.ts"
import { sourceFiles } from "../support/files/source-files.ts"
import { REPOSITORY } from "../support/opencode/opencode-binary.ts"

const sources = [".opencode/plugins", ".opencode/baton"]
  .flatMap((folder) => sourceFiles(folder, ".ts"))
  .map((path) => ({ path: path.replace(".opencode/baton/", ""), text: readFileSync(join(REPOSITORY, path), "utf8") }))

const pathsWith = (pattern: RegExp): string[] =>
  sources.filter(({ text }) => pattern.test(text)).map(({ path }) => path)

const READING = /\b(?:readFile|readFileSync|createReadStream|open|openSync)\b/

/** The names that a file takes from node:fs. */
const takenFromFs = (text: string): string =>
  [...text.matchAll(/import \{([^}]*)\} from "node:fs(?:\/promises)?"/g)].map(([, names]) => names).join()

/** They open files for something else than to read what a project may have put there. */
const OPENS: Readonly<Record<string, string>> = {
  "doctor/checks/records.ts": "the header of the person's ledger",
  "host/process-identity.ts": "the kernel's list of processes",
  "host/project-file.ts": "a file of the project for the model, with the same guards and more",
  "host/state.ts": "writes, and flushes a folder",
  "ledger/embedded/main.ts": "its own stdin",
  "ledger/embedded/make-copy.ts": "flushes the copy that it has just written",
  "ledger/runner.ts": "programs on PATH",
  "pass-over/sandbox/journal.ts": "contents that git has just written, checked by their hash",
  "pass-over/sandbox/stored.ts": "as journal.ts",
  "work/processes.ts": "the kernel's list of processes",
}

describe("what came with the repository is text", () => {
  test(promised("trust.A4", "one function reads files; no other file of the bundle opens one, but those named"), () => {
    const readers = sources
      .filter(({ text }) => READING.test(takenFromFs(text)) || /getBuiltinModule\("node:fs"\)\S*\.read/.test(text))
      .map(({ path }) => path)
      .filter((path) => path !== "host/untrusted.ts")
    expect(readers.sort()).toEqual(Object.keys(OPENS))
  })

  test(promised("trust.A4", "one function runs git: no other file of the bundle names the program"), () => {
    expect(pathsWith(/(?<!\w)\[\s*["'`]git["'`]/)).toEqual(["host/untrusted.ts"])
  })

  test(promised("trust.A4", "no other file starts a program: git, writer and ledger go through the runners"), () => {
    expect(pathsWith(/(?:from |getBuiltinModule\()"node:child_process"/).sort()).toEqual([
      "host/process-identity.ts",
      "host/process.ts",
      "host/untrusted.ts",
      "live-state/stream-writer.ts",
      // Agents and checks, which the person started.
      "work/agent.ts",
      "work/checks.ts",
      "work/processes.ts",
    ])
  })

  test(promised("trust.B1", "commands print by host/cli.ts, but those that draw or answer a program"), () => {
    const others = ["doctor/import-plugin.ts", "doctor/main.ts", "live-state/observe-command.ts"]
    expect(pathsWith(/process\.std(?:out|err)\.write/).sort()).toEqual([...others, "host/cli.ts"].sort())
  })
})
