import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { BOTH_ENDS, type SharedTask, testsOnce } from "../../support/index.ts"
import { type AgentScript, isOrdered, passOver, reviews } from "../../support/model/pass-over-script.ts"
import { goThrough, openSharedPasses } from "../../support/opencode/pass-over-project.ts"

/** A plugin of the project's own, as docs/pass-over.md shows it: its tools answer with what came back, or why nothing did. */
const PLUGIN = `import { type PassContext, PassOverFailure, passOver, passOverWithRetry } from "../baton/pass-over/api.ts"

const told = async (passed: Promise<unknown>): Promise<string> => {
  try {
    return JSON.stringify(await passed)
  } catch (error) {
    if (error instanceof PassOverFailure) return JSON.stringify({ code: error.code, isRecoverable: error.isRecoverable, why: error.message })
    throw error
  }
}
const request = (subagent: string) => ({
  subagent,
  work_context: { objective: "REVIEW-IT: are the changes correct?", files: ["src/a.ts"] },
  reason: "code_review",
})

export const Review = async () => ({
  tool: {
    review: {
      description: "Has the changes reviewed",
      args: {},
      execute: (_args: unknown, context: PassContext) => told(passOver(request("audit"), context)),
    },
    review_by_nobody: {
      description: "Asks an agent that is not there",
      args: {},
      execute: (_args: unknown, context: PassContext) => told(passOver(request("nobody"), context)),
    },
    review_badly: {
      description: "Calls passOver without an objective",
      args: {},
      execute: (_args: unknown, context: PassContext) => told(passOver({ subagent: "audit", work_context: {} } as never, context)),
    },
    review_again: {
      description: "Has the changes reviewed, twice if need be",
      args: {},
      execute: (_args: unknown, context: PassContext) =>
        told(passOverWithRetry({ request: request("audit"), options: { max_retries: 1, retry_delay_ms: 10, backoff_multiplier: 1 } }, context)),
    },
  },
})
`

const open = async (
  binary: Parameters<typeof openSharedPasses>[0],
  tool: string,
  agents: Record<string, AgentScript> = {},
  policy: unknown = {},
): Promise<SharedTask> => {
  const task = await openSharedPasses(binary, { root: [{ tool, input: {} }, { text: "Done." }], agents, policy })
  task.project.write("src/a.ts", "export const a = 1\nexport const fault = eval(a)\n")
  task.project.write(".opencode/plugins/review.ts", PLUGIN)
  return task
}

/** The answer of the plugin's tool. */
const answerOf = async (task: SharedTask): Promise<Record<string, unknown>> => {
  const answer = await goThrough(task)
  return JSON.parse(answer.slice(answer.indexOf("{"), answer.lastIndexOf("}") + 1))
}

describe.each(BOTH_ENDS)("OpenCode $version", (binary) => {
  const once = testsOnce(binary)
  test(
    promised("passes.A8", "a plugin's pass gives the subagent's output, bound by the agent whose call it answers"),
    async () => {
      const task = await open(binary, "review", { "REVIEW-IT": reviews(["src/a.ts"], "eval") })
      const output = await answerOf(task)
      expect(output).toMatchObject({
        return_to: "build",
        status: "completed",
        summary: { decision: "changes_requested" },
        reading: { files: 1, searches: 1 },
        metadata: { chain_depth: 1, attempts: 1 },
      })
      expect(output.artifacts).toContainEqual(
        expect.objectContaining({ type: "finding", path: "src/a.ts", line: 2, severity: "error" }),
      )
      const order = task.model
        .received("turn")
        .find(({ conversation }) => conversation.includes("# Context of the work"))
      expect(order?.conversation).toContain("The agent build passes this work over to you")
      expect(order?.conversation).toContain("export const fault")
    },
  )

  once(
    promised("passes.A8", "without an output the plugin gets an error with its code, and nothing is passed"),
    async () => {
      const unknown = await open(binary, "review_by_nobody")
      const answer = await answerOf(unknown)
      expect(answer).toMatchObject({ code: "E001", isRecoverable: false, why: expect.stringContaining("nobody") })
      const invalid = await open(binary, "review_badly")
      expect(await answerOf(invalid)).toMatchObject({
        why: expect.stringMatching(/not valid; nothing was passed[\s\S]*objective/),
      })
    },
  )

  once(
    promised("passes.A8", "a plugin's own number of tries counts, and a failure comes back as an output"),
    async () => {
      const refusal = { status: 400, message: "model says no" }
      const task = await open(binary, "review_again", { "REVIEW-IT": [refusal] }, { defaults: { max_retries: 3 } })
      expect(await answerOf(task)).toMatchObject({
        status: "failed",
        error: { code: "E011", cause: expect.stringContaining("model says no") },
        metadata: { attempts: 2 },
      })
    },
  )

  once(
    promised("passes.A8", "the chain's limits hold for a plugin: a subagent's plugin tool passes to no agent above it"),
    async () => {
      const task = await openSharedPasses(binary, {
        root: [passOver({ subagent: "coder", objective: "CODE-IT" }), { text: "Done." }],
        agents: { "CODE-IT": [{ tool: "review", input: {} }, { text: "Done." }] },
        policy: { defaults: { max_chain_depth: 1 } },
      })
      task.project.write(".opencode/plugins/review.ts", PLUGIN)
      await goThrough(task)
      const coder = task.model.received("turn").findLast(isOrdered)
      expect(coder?.conversation).toContain('"code":"E002"')
    },
  )
})
