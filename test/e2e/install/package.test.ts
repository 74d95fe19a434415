import { rmSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { removePackage, unpackPackage } from "../../support/files/packed-package.ts"
import { runScript } from "../../support/files/small-checkout.ts"
import { BOTH_ENDS, casesOf, openTaskProject, snapshotTree, type TaskProject } from "../../support/index.ts"
import { afterDelivery, compactionsOf, compactsAfterSteps, lastTurn, runWell, turnsOf } from "../sessions.ts"

removePackage()

const MESSAGE = "Teach the parser CRLF line ends, without touching the lexer, and keep the tests green."

/** Runs the package's command in the project, with its home. */
const baton = ({ project, binary }: TaskProject, ...args: string[]) => {
  const { directory, environment } = project
  return runScript([process.execPath, join(project.home, "node_modules/baton-opencode/scripts/lib/cli.mjs"), ...args], {
    cwd: directory,
    env: { ...environment, BATON_OPENCODE: binary.path },
  })
}

/** Everything but git's own files and what OpenCode and Baton write at run time; 1.18 makes itself a global opencode.jsonc. */
const files = (folder: string) =>
  Object.entries(snapshotTree(folder)).filter(
    ([path]) => !/^(?:\.git|\.opencode\/state|opencode\/opencode\.jsonc)(?:\/|$)/.test(path),
  )

const PLACES: [what: string, options: string[]][] = [
  ["into a project", []],
  ["--global", ["--global"]],
]

describe.each(BOTH_ENDS)("OpenCode $version", (binary) => {
  test.each(casesOf(binary, PLACES))(
    promised(["package.A1", "package.A4", "task.D2"], "one command, %s, and one message is a guarded task"),
    async (_, where) => {
      const script = afterDelivery(() => task, compactsAfterSteps(1))
      const task: TaskProject = await openTaskProject(binary, script, { bundle: "none" })
      const { directory, home } = task.project
      unpackPackage(join(home, "node_modules", "baton-opencode"))
      const folders = [directory, join(home, ".config")]
      const before = folders.map(files)
      expect(baton(task, "init", ...where)).toMatchObject({ exitCode: 0, stderr: "" })
      // As on a machine that never had a ledger.
      rmSync(join(home, ".prog"), { recursive: true })
      await runWell(task, MESSAGE)
      const [, made = ""] = /The message above is task (ts-\w+)/.exec(turnsOf(task)[0] ?? "") ?? []
      expect(compactionsOf(task)[0], "the prompt that comes with the copy").toContain("Drop words, never facts.")
      expect(lastTurn(task)).toContain("(compaction 1 of this session)")
      expect(lastTurn(task)).toContain(MESSAGE)
      expect(task.model.received("turn")[0]?.tools).toContain("pass_over")
      expect(await task.ledger.messages(made)).toEqual(["Compaction 1: A summary."])
      expect(baton(task, "doctor", "--json").stdout).toContain('"broken": 0')
      expect(baton(task, "uninstall", ...where)).toMatchObject({ exitCode: 0, stderr: "" })
      expect(folders.map(files)).toEqual(before)
    },
  )
})
