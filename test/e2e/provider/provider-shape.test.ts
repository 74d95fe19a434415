import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { type ProviderProxy, startProviderProxy } from "../../support/faults/provider-proxy.ts"
import {
  BOTH_ENDS,
  bash,
  COMPACTING_PROMPT_TOKENS,
  closeTaskProjects,
  type ModelReply,
  openSharedTask,
  TASK,
} from "../../support/index.ts"
import { lastToolAnswer, passOver, returns, START } from "../../support/model/pass-over-script.ts"
import { openSharedPasses } from "../../support/opencode/pass-over-project.ts"

closeTaskProjects()

/** Configures the model for Anthropic's package, with reasoning and cache control. */
const anthropic = (proxy: ProviderProxy, context: number) => ({
  provider: {
    scripted: {
      npm: "@ai-sdk/anthropic",
      name: "Scripted",
      options: { baseURL: proxy.url, apiKey: "none" },
      models: {
        model: {
          id: "claude-sonnet-4-5",
          name: "Model",
          tool_call: true,
          reasoning: true,
          limit: { context, output: 2_000 },
          options: { thinking: { type: "enabled", budgetTokens: 1_024 } },
        },
      },
    },
  },
})

type Block = { type: string; text?: string; signature?: string }
type ClaudeRequest = { system: unknown; tools?: unknown[]; messages: { role: string; content: Block[] }[] }

const withoutCacheControl = (body: string): ClaudeRequest =>
  JSON.parse(body, (key, value) => (key === "cache_control" ? undefined : value))

/** The requests for agents' steps: those for titles and summaries have no tools. */
const turnsOf = ({ bodies }: ProviderProxy): ClaudeRequest[] =>
  bodies.map(withoutCacheControl).filter(({ tools }) => tools !== undefined)

/** Expects that each request begins with the whole previous one. */
const expectSharedPrefixes = (requests: readonly ClaudeRequest[]): void => {
  expect(requests.length).toBeGreaterThan(1)
  for (const [at, { system, messages }] of requests.entries()) {
    const before = requests[at - 1] ?? { system, messages: [] }
    const bytes = (some: unknown[]) => some.map((each) => JSON.stringify(each))
    expect(JSON.stringify(system)).toBe(JSON.stringify(before.system))
    expect(bytes(messages).slice(0, before.messages.length)).toEqual(bytes(before.messages))
  }
}

/** In a provider's prompt cache the tools come first. */
const expectSameTools = (requests: readonly ClaudeRequest[]): void => {
  expect(new Set(requests.map(({ tools }) => JSON.stringify(tools))).size).toBe(1)
}

/** Positions of parts with these words: number of the message and of the part. */
const placesOf = (words: string, { messages }: ClaudeRequest): string[] =>
  messages.flatMap(({ content }, message) =>
    content.flatMap(({ text = "" }, part) => (text.includes(words) ? [`${message}.${part}`] : [])),
  )

const thinking = (reply: ModelReply): ModelReply => ({ ...reply, reasoning: "Let me see." })

describe.each(BOTH_ENDS)("OpenCode $version", (binary) => {
  test(
    promised(
      ["start.A1", "compaction.C6", "compaction.C7"],
      "with a Claude that thinks the task and the note stand in one place, and each request begins like the one before",
    ),
    async () => {
      const proxy = await startProviderProxy()
      const steps = [bash("true"), bash("true", COMPACTING_PROMPT_TOKENS), bash("true"), { text: "Noted." }]
      const task = await openSharedTask(
        binary,
        ({ kind }) => thinking(kind === "compaction" ? { text: "A summary." } : (steps.shift() ?? { text: "Done." })),
        { config: anthropic(proxy, 20_000) },
      )
      proxy.target = task.model.url
      const session = await task.say(task.message)
      await task.say("What is next?", session)

      const turns = turnsOf(proxy)
      expect(proxy.bodies.every((body) => body.includes('"cache_control":{"type":"ephemeral"}'))).toBe(true)
      expect(turns[1]?.messages[1]?.content[0]).toMatchObject({
        type: "thinking",
        signature: expect.stringMatching(/./),
      })
      const [before, after] = [turns.slice(0, 2), turns.slice(2)]
      expectSharedPrefixes(before)
      expectSharedPrefixes(after)
      expectSameTools(turns)
      for (const turn of before) expect(placesOf(TASK.specification, turn)).toEqual(["0.1"])
      for (const turn of after) {
        expect(placesOf("(compaction 1 of this session)", turn)).toEqual(["0.1"])
        expect(placesOf(TASK.specification, turn)).toEqual(["0.1"])
      }
      expect(await task.records(1)).toEqual(["Compaction 1: A summary."])
    },
  )

  test(
    promised(["pass-over.A1", "pass-over.G1"], "a Claude that thinks passes work over, and each of the two goes on"),
    async () => {
      const proxy = await startProviderProxy()
      const task = await openSharedPasses(binary, {
        root: [thinking(passOver({ subagent: "general", objective: "LOOK-IT up" })), thinking({ text: "Done." })],
        agents: { "LOOK-IT": [thinking(bash("cat src/a.ts")), thinking(returns({ summary: "a is 1." }))] },
        config: anthropic(proxy, 100_000),
      })
      proxy.target = task.model.url
      const session = await task.say(START)
      await task.say("And now?", session)

      const answer = lastToolAnswer(task.model.requests)
      expect(answer).toContain("general → completed")
      expect(answer).toContain("a is 1.")
      const isChild = (turn: ClaudeRequest) => placesOf("passes this work over to you", turn).includes("0.0")
      const turns = turnsOf(proxy)
      const [child, root] = [turns.filter(isChild), turns.filter((turn) => !isChild(turn))]
      expectSharedPrefixes(child)
      expectSharedPrefixes(root)
      expectSameTools(child)
      // After its first pass a session is offered the tools for results.
      expectSameTools(root.slice(1))
    },
  )
})
