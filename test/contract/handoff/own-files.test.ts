import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { readUncommitted } from "../../../.opencode/baton/handoff/own-files.ts"
import { createProcessRunner } from "../../../.opencode/baton/host/process.ts"
import { createPromptFiles } from "../../../.opencode/baton/task/prompts.ts"
import { promised } from "../../requirements.ts"
import { temporaryFolder } from "../../support/files/with-test.ts"
import { gitIn, writeFiles } from "../../support/opencode/pass-project.ts"

const OURS = {
  ".opencode/baton/core/core.ts": "core\n",
  ".opencode/plugins/handoff.ts": "plugin\n",
  ".opencode/state/handoffs/a.json": "{}\n",
  ".opencode/pass-over-logs/a.jsonl": "{}\n",
  "prompts/worker.md": "<!-- baton: contract -->\n# Worker\n",
}
const THEIRS = {
  ".opencode/agent/mine.md": "Mine.\n",
  ".opencode/plugins/mine.ts": "mine\n",
  "prompts/sales.md": "Dear customer,\n",
  "src/a.ts": "a\n",
}

const setUp = (place = "") => {
  const root = join(temporaryFolder(), "repository")
  const projectRoot = join(root, place)
  const write = (files: Record<string, string>) => writeFiles(projectRoot, files)
  write({ "README.md": "A project\n" })
  gitIn(root, "init", "-q", "-b", "main")
  const commit = () => {
    gitIn(root, "add", "-A")
    gitIn(root, "commit", "-q", "-m", "one")
  }
  commit()
  const run = createProcessRunner({ shell: undefined })
  const prompts = createPromptFiles({ root: projectRoot })
  const uncommitted = async () => (await readUncommitted({ run, prompts, root, projectRoot }))?.toSorted()
  return { write, commit, uncommitted }
}

describe("uncommitted work", () => {
  const PLACES = ["", "packages/app"]
  test.each(PLACES)(
    promised("handoff.F1", "uncommitted work has none of Baton's files, all of the user's (in '%s')"),
    async (place) => {
      const { write, uncommitted } = setUp(place)
      write(OURS)
      expect(await uncommitted()).toEqual([])
      write(THEIRS)
      // git shows a new folder that has nothing of ours in place of its files.
      const shown = Object.keys(THEIRS).map((path) => join(place, path).replace("src/a.ts", "src/"))
      expect(await uncommitted()).toEqual(shown.toSorted())
    },
  )

  test(
    promised("handoff.F1", "uncommitted work has of committed files what the user edited, not what an update replaced"),
    async () => {
      const { write, commit, uncommitted } = setUp()
      write({ ".opencode/agent/mine.md": "Mine.\n" })
      commit()
      write(OURS)
      expect(await uncommitted()).toEqual([])
      commit()
      const updated = {
        ".opencode/baton/core/core.ts": "a new core\n",
        "prompts/worker.md": "<!-- baton: contract -->\nNew.\n",
      }
      const lines = Object.entries(updated).map(([path, { length }]) => `1\t${length}\t${path}`)
      write({ ...updated, ".opencode/baton/.manifest": `# made by install\n${lines.join("\n")}\n` })
      expect(await uncommitted()).toEqual([])
      write({ "prompts/worker.md": "<!-- baton: contract -->\nNew, and mine.\n" })
      expect(await uncommitted()).toEqual(["prompts/worker.md"])
    },
  )
})
