import { existsSync, mkdirSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { newestWords } from "../../support/index.ts"
import { openTask2 } from "../../support/opencode/opencode-2.ts"
import { HAS_OPENCODE_2, openCode2 } from "../../support/opencode/opencode-binary.ts"
import { runOpenCode } from "../../support/opencode/opencode-run.ts"

describe.runIf(HAS_OPENCODE_2)("OpenCode 2.0.15 in a folder of the project", () => {
  test(
    promised(["guard.A1", "guard.A2"], "files that OpenCode obeys are asked for, Baton's refused, others written"),
    async () => {
      const task = await openTask2((request) => {
        const words = newestWords(request)
        const [, path = ""] = /WRITE (\S+)/.exec(words) ?? []
        if (path === "" || words.includes("[tool]")) return { text: "Done." }
        return { tool: "write", input: { path, content: "new\n" } }
      })
      const top = task.project.directory
      const directory = join(top, "packages", "api")
      mkdirSync(directory, { recursive: true })
      const write = async (path: string) => {
        const file = join(top, path)
        // OpenCode takes the folder from the shell's variable.
        const environment = { PWD: directory }
        const place = { binary: openCode2(), project: { ...task.project, directory }, environment }
        const ended = await runOpenCode(`WRITE ${file}`, place)
        return existsSync(file) ? "written" : `${ended.stderr}${ended.stdout}${newestRequest()}`
      }
      const newestRequest = () => task.model.received("turn").at(-1)?.conversation ?? ""
      expect(await write("src/free.ts")).toBe("written")
      expect(await write(".opencode/baton/new.ts")).toContain("Baton's own files")
      for (const path of [".opencode/tool/x.ts", ".opencode/command/x.md"])
        expect(await write(path), path).toMatch(/permission requested: edit/)
    },
  )
})
