import { describe, expect, test } from "vitest"
import {
  type ContextDeps,
  DEFAULT_HANDOFF_PROMPT,
  loadContext,
  readInstructions,
} from "../../../.opencode/baton/compaction/context.ts"
import { EMPTY_STATE } from "../../../.opencode/baton/compaction/session-state.ts"
import { builtInProtocol, type PromptFile, type PromptName } from "../../../.opencode/baton/task/prompts.ts"
import { promised } from "../../requirements.ts"
import { createRecordedLog } from "../../support/recorded-log.ts"
import { BINDING } from "../../support/task-binding.ts"

const PROMPT: PromptFile = { kind: "text", path: "prompts/handoff.md", text: "The user's wording." }

const setUp = (prompt: (name: PromptName) => PromptFile = () => PROMPT, root = "/nowhere") => {
  const log = createRecordedLog()
  const deps: ContextDeps = {
    sessions: { todos: async () => ({ kind: "ok", value: [] }) },
    ledger: { readTask: async () => ({ kind: "unknown" }) },
    prompts: { read: prompt },
    root,
    log,
  }
  return { deps, log }
}

describe("the context of a compaction", () => {
  test(promised("compaction.C2", "holds the user's prompt as it is now"), () => {
    const { deps, log } = setUp()
    expect(readInstructions(deps, BINDING.sessionID)).toBe("The user's wording.")
    expect(log.lines).toEqual([])
  })

  test(
    promised(
      ["compaction.C2", "faults.F2"],
      "holds the built-in texts where the prompts cannot be used, with a warning each",
    ),
    async () => {
      const { deps, log } = setUp((name) => ({ kind: "unusable", path: `prompts/${name}.md`, reason: "it is empty" }))
      expect(readInstructions(deps, BINDING.sessionID)).toBe(DEFAULT_HANDOFF_PROMPT)
      await loadContext(deps, BINDING, EMPTY_STATE)
      const reasons = log.lines.filter(({ message }) => message.includes("prompt unusable")).map(({ extra }) => extra)
      expect(reasons).toEqual([
        expect.objectContaining({ path: "prompts/handoff.md", reason: "it is empty" }),
        expect.objectContaining({ path: "prompts/worker.md", reason: "it is empty" }),
      ])
    },
  )

  test(promised("start.A4", "names the project's own prompts in one line each, and uses none"), async () => {
    const { deps, log } = setUp((name) => ({ kind: "foreign", path: `prompts/${name}.md` }))
    expect(readInstructions(deps, BINDING.sessionID)).toBe(DEFAULT_HANDOFF_PROMPT)
    const { identity } = await loadContext(deps, BINDING, EMPTY_STATE)
    expect(identity.protocol).toBe(builtInProtocol("worker", BINDING))
    const lines = log.lines.filter(({ message }) => message.includes("the project's own"))
    expect(lines.map(({ level, message }) => `${level} ${message}`)).toEqual([
      "info prompts/handoff.md is the project's own (no contract comment): built-in text used",
      "info prompts/worker.md is the project's own (no contract comment): built-in protocol used",
    ])
  })

  test(
    promised(["compaction.C5", "compaction.C9"], "lacks git outside a repository, and the log says so"),
    async () => {
      const { deps, log } = setUp()
      const { facts } = await loadContext(deps, BINDING, EMPTY_STATE)
      expect(facts.git).toBeUndefined()
      expect(log.lines).toContainEqual(expect.objectContaining({ level: "debug", message: "git state unknown" }))
    },
  )
})
