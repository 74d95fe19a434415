import { afterEach, beforeEach, describe, expect, test, vi } from "vitest"
import {
  type ContextDeps,
  DEFAULT_HANDOFF_PROMPT,
  loadContext,
  readInstructions,
} from "../../../.opencode/baton/compaction/context.ts"
import { EMPTY_STATE } from "../../../.opencode/baton/compaction/session-state.ts"
import type { ProcessOutcome } from "../../../.opencode/baton/host/process.ts"
import { builtInProtocol, type PromptFile, type PromptName } from "../../../.opencode/baton/task/prompts.ts"
import { promised } from "../../requirements.ts"
import { createRecordedLog } from "../../support/recorded-log.ts"
import { BINDING } from "../../support/task-binding.ts"

const PROMPT: PromptFile = { kind: "text", path: "prompts/handoff.md", text: "The user's wording." }

type Given = { promptAfterMs: number; git: ProcessOutcome; prompt?: (name: PromptName) => PromptFile }

/** @param promptAfterMs how long a prompt file takes to read */
const setUp = ({ promptAfterMs, git, prompt = () => PROMPT }: Given) => {
  const log = createRecordedLog()
  const deps: ContextDeps = {
    sessions: { todos: async () => ({ kind: "answer", value: [] }) },
    ledger: { readTask: async () => ({ kind: "unknown" }) },
    prompts: {
      read: (name) => new Promise<PromptFile>((resolve) => setTimeout(() => resolve(prompt(name)), promptAfterMs)),
    },
    run: async () => git,
    root: "/project",
    log,
  }
  return { deps, log }
}

const exited = (exitCode: number, stdout: string, stderr = ""): ProcessOutcome => ({
  kind: "exited",
  exitCode,
  stdout,
  stderr,
})
const REPOSITORY_FOUND = exited(0, "0123456789abcdef\nmain\n")

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

const settle = async <T>(work: Promise<T>): Promise<T> => {
  await vi.runAllTimersAsync()
  return await work
}

describe("what a compaction gathers", () => {
  test(promised("compaction.C2", "a prompt that a busy machine reads in one second is used"), async () => {
    const { deps, log } = setUp({ promptAfterMs: 1_000, git: REPOSITORY_FOUND })
    expect(await settle(readInstructions(deps, BINDING.sessionID))).toBe("The user's wording.")
    expect(log.lines).toEqual([])
  })

  test(
    promised(
      ["compaction.C2", "faults.F2"],
      "a prompt that is never read gives way to the built-in text, with a warning",
    ),
    async () => {
      const { deps, log } = setUp({ promptAfterMs: 60_000, git: REPOSITORY_FOUND })
      expect(await settle(readInstructions(deps, BINDING.sessionID))).not.toContain("The user's wording.")
      await settle(loadContext(deps, BINDING, EMPTY_STATE))
      const reasons = log.lines.filter(({ message }) => message.includes("prompt unusable")).map(({ extra }) => extra)
      expect(reasons).toEqual([
        expect.objectContaining({ path: "prompts/handoff.md", reason: "it was not read within 1500 ms" }),
        expect.objectContaining({ path: "prompts/worker.md", reason: "it was not read within 1500 ms" }),
      ])
    },
  )

  test(promised("start.A4", "the project's own prompts are named in one line each, and used nowhere"), async () => {
    const prompt = (name: PromptName): PromptFile => ({ kind: "foreign", path: `prompts/${name}.md` })
    const { deps, log } = setUp({ promptAfterMs: 0, git: REPOSITORY_FOUND, prompt })
    expect(await settle(readInstructions(deps, BINDING.sessionID))).toBe(DEFAULT_HANDOFF_PROMPT)
    const { identity } = await settle(loadContext(deps, BINDING, EMPTY_STATE))
    expect(identity.protocol).toBe(builtInProtocol("worker", BINDING))
    const lines = log.lines.filter(({ message }) => message.includes("the project's own"))
    expect(lines.map(({ level, message }) => `${level} ${message}`)).toEqual([
      "info prompts/handoff.md is the project's own (no contract comment): built-in text used",
      "info prompts/worker.md is the project's own (no contract comment): built-in protocol used",
    ])
  })

  test.each<[string, ProcessOutcome, string]>([
    ["no git", { kind: "not-started", cause: "git is not on PATH" }, "git is not on PATH"],
    ["a git that hangs", { kind: "timed-out", deadlineMs: 1_000 }, "git did not end within 1000 ms"],
    [
      "no repository",
      exited(128, "", "fatal: not a git repository\nmore\n"),
      "git rev-parse exited with 128: fatal: not a git repository",
    ],
  ])(
    promised(["compaction.C5", "compaction.C9"], "with %s the facts lack git, and the log says why"),
    async (_, git, reason) => {
      const { deps, log } = setUp({ promptAfterMs: 0, git })
      const { facts } = await settle(loadContext(deps, BINDING, EMPTY_STATE))
      expect(facts.git).toBeUndefined()
      expect(log.lines).toContainEqual({
        level: "debug",
        message: "git state unknown",
        extra: { sessionID: BINDING.sessionID, reason },
      })
    },
  )

  test(promised("compaction.C5", "a detached HEAD is called so"), async () => {
    const { deps } = setUp({ promptAfterMs: 0, git: exited(0, "0123456789abcdef\nHEAD\n") })
    const { facts } = await settle(loadContext(deps, BINDING, EMPTY_STATE))
    expect(facts.git).toEqual({ head: "0123456789abcdef", branch: "(detached)" })
  })
})
