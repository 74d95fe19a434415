import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { describe, expect, onTestFinished, test } from "vitest"
import { createDeferred } from "../../../.opencode/baton/host/async.ts"
import { promised } from "../../requirements.ts"
import {
  BOTH_ENDS,
  bash,
  COMPACTING_PROMPT_TOKENS,
  casesOf,
  endsOf,
  eventually,
  LEDGER_WAIT_MS,
  type ModelReply,
  type OpenCodeBinary,
  openSharedTask,
  type Script,
  type SharedTask,
  TASK,
  testsOnce,
} from "../../support/index.ts"
import { lastToolAnswer, passOver, returns, START } from "../../support/model/pass-over-script.ts"
import {
  ADDITIONS,
  FEATURE_NAMES,
  mayAdd,
  REQUEST_NAMES,
  type RecordedRequests,
  recordRequests,
} from "../../support/model/request-scenario.ts"
import { scriptedConfig } from "../../support/opencode/isolated-opencode.ts"
import { openSharedPasses } from "../../support/opencode/pass-over-project.ts"
import { compact, lastTurn, recordsOf } from "../sessions.ts"

/** Starts a proxy between OpenCode and a scripted model; it ends with the test. */
const startProviderProxy = async () => {
  const proxy = {
    /** Request bodies as received, oldest first. */
    bodies: [] as string[],
    /** Base URL of the scripted model that receives the requests. */
    target: "",
    /** Changes the model's answer before OpenCode gets it; `isCut` closes the connection after it. */
    answer: (_body: string, text: string): { text: string; isCut?: boolean } => ({ text }),
  }
  const forward = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = (await request.toArray()).join("")
    proxy.bodies.push(body)
    const headers = { "content-type": "application/json" }
    const answer = await fetch(`${proxy.target}${request.url ?? ""}`, { method: "POST", headers, body })
    // On 1.2.15 a kept connection that ends in mid-stream is reopened without OpenCode's knowledge.
    response.writeHead(answer.status, { ...Object.fromEntries(answer.headers), connection: "close" })
    const { text, isCut } = proxy.answer(body, await answer.text())
    if (isCut) response.write(text, () => response.destroy())
    else response.end(text)
  }
  const server = createServer((request, response) => {
    forward(request, response).catch((error: unknown) => response.destroy(new Error("not forwarded", { cause: error })))
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return Object.assign(proxy, { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` })
}

type ProviderProxy = Awaited<ReturnType<typeof startProviderProxy>>

/** Configures the model for Anthropic's package, with reasoning and cache control. */
const anthropic = ({ url }: ProviderProxy, context: number) => {
  const options = { thinking: { type: "enabled", budgetTokens: 1_024 } }
  const does = { tool_call: true, reasoning: true, limit: { context, output: 2_000 }, options }
  const models = { model: { id: "claude-sonnet-4-5", name: "Model", ...does } }
  const scripted = { npm: "@ai-sdk/anthropic", name: "Scripted", options: { baseURL: url, apiKey: "none" }, models }
  return { provider: { scripted } }
}

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
  const once = testsOnce(binary)
  once(
    promised(
      ["start.A1", "compaction.C6", "compaction.C7"],
      "a Claude that thinks goes on after a compaction, and its prompts can be cached",
    ),
    async () => {
      const proxy = await startProviderProxy()
      const steps = [bash("true"), bash("true", COMPACTING_PROMPT_TOKENS), bash("true"), { text: "Noted." }]
      const script: Script = ({ kind }) =>
        thinking(kind === "compaction" ? { text: "A summary." } : (steps.shift() ?? { text: "Done." }))
      const task = await openSharedTask(binary, script, { config: anthropic(proxy, 20_000) })
      proxy.target = task.model.url
      const session = await task.say(task.message)
      await task.say("What is next?", session)

      const turns = turnsOf(proxy)
      expect(proxy.bodies.every((body) => body.includes('"cache_control":{"type":"ephemeral"}'))).toBe(true)
      const signature = expect.stringMatching(/./)
      expect(turns[1]?.messages[1]?.content[0]).toMatchObject({ type: "thinking", signature })
      const [before, after] = [turns.slice(0, 2), turns.slice(2)]
      expectSharedPrefixes(before)
      expectSharedPrefixes(after)
      expectSameTools(turns)
      for (const turn of turns) expect(placesOf(TASK.specification, turn)).toEqual(["0.1"])
      for (const turn of after) expect(placesOf("(compaction 1 of this session)", turn)).toEqual(["0.1"])
      expect(await task.records(1)).toEqual(["Compaction 1: A summary."])
    },
  )

  once(promised(["pass-over.A1", "pass-over.G1"], "a thinking Claude passes work over, and both go on"), async () => {
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
  })
})

type Reply = (at: number) => ModelReply | Promise<ModelReply>

/**
 * A session on the task that continues after a failed summary.
 *
 * @param summarise answers each request for a summary
 */
const openSession = async (binary: OpenCodeBinary, summarise: Reply, proxy?: ProviderProxy) => {
  const recordsBefore: number[] = []
  const script: Script = async ({ kind, index }) => {
    if (kind !== "compaction") return { text: "Noted." }
    recordsBefore.push((await recordsOf(task)).length)
    return summarise(index)
  }
  const options = proxy ? { config: { provider: scriptedConfig({ modelURL: proxy.url }).provider } } : {}
  const task: SharedTask = await openSharedTask(binary, script, options)
  if (proxy) proxy.target = task.model.url
  const id = await task.say(task.message)
  return {
    task,
    id,
    compact: () => compact(task, id),
    /** OpenCode has repeated the summary by itself, or repeats it when the user continues. */
    expectOneRecord: async (line: string) => {
      await task.say("go on", id)
      await task.say("What is next?", id)
      expect(await task.records(1)).toEqual([`Compaction 1: ${line}`])
      expect(recordsBefore, "records when a summary was asked for").toEqual([0, 0])
      // The handoff is written behind the log line.
      const stored = async () => {
        const { description } = await task.ledger.show(task.taskID)
        return description.includes("# Handoff after compaction") ? description : undefined
      }
      const description = await eventually("the handoff", stored, ...LEDGER_WAIT_MS)
      expect(description.startsWith(TASK.specification)).toBe(true)
      expect(description.split("# Handoff after compaction")).toHaveLength(2)
      expect(lastTurn(task)).toContain("(compaction 1 of this session)")
      expect(lastTurn(task)).toContain(TASK.title)
    },
  }
}

/** The first half of a summary's events. */
const half = (answer: string): string[] => {
  const events = answer.split("\n\n")
  return events.slice(0, events.length / 2)
}

const FAILURE = `data: ${JSON.stringify({ error: { message: "overloaded", type: "server_error" } })}\n\n`
const HALF = { text: "This half of a summary, and all the rest of it." }

type Spoil = (answer: string) => { text: string; isCut?: boolean }

/** The answer to the first request for a summary, and what becomes of it on its way. */
const FAULTS: readonly [what: string, first: ModelReply, spoil?: Spoil][] = [
  ["connection that ends in mid-stream", HALF, (answer) => ({ text: half(answer).join("\n\n"), isCut: true })],
  ["error in mid-stream", HALF, (answer) => ({ text: [...half(answer), FAILURE].join("\n\n") })],
  ["demand for fewer requests", { status: 429, message: "Too many requests." }],
  ["refusal", { status: 400, message: "No summary today." }],
]

describe.each(BOTH_ENDS)("OpenCode $version", (binary) => {
  const faults = casesOf(binary, FAULTS)
  test.each(faults)(promised("compaction.C8", "the %s leaves no record, its repetition one"), async (...fault) => {
    const [, first, spoil] = fault
    const proxy = await startProviderProxy()
    const session = await openSession(binary, (at) => (at === 0 ? first : { text: "The whole summary." }), proxy)
    if (spoil) proxy.answer = (_body, answer) => (answer.includes("This half") ? spoil(answer) : { text: answer })
    await session.compact()
    await session.expectOneRecord("The whole summary.")
  })

  /** Where two long texts part: the report cuts them. */
  const differenceOf = (expected: string, received: string): string => {
    let at = 0
    while (at < expected.length && expected[at] === received[at]) at++
    const part = (text: string): string => JSON.stringify(text.slice(Math.max(0, at - 80), at + 240))
    return `expected ${part(expected)}, received ${part(received)}`
  }

  let plain: Promise<RecordedRequests> | undefined
  const features = casesOf(binary, FEATURE_NAMES)
  test.each(features)(promised(["tokens.C2", "pass-over.A8"], "%s alone changes no other request"), async (feature) => {
    plain ??= recordRequests(binary, [], openSharedTask)
    const recorded = recordRequests(binary, [feature], openSharedTask)
    const [without, withFeature] = await Promise.all([plain, recorded])
    // Byte for byte.
    for (const name of REQUEST_NAMES.filter((each) => !mayAdd(feature, each)))
      expect(withFeature[name].text, `${name}: ${differenceOf(without[name].text, withFeature[name].text)}`).toBe(
        without[name].text,
      )
    const used = REQUEST_NAMES.filter((name) => withFeature[name].text !== without[name].text)
    expect(used).toEqual(ADDITIONS[feature].adds)
    if (feature !== "pass-over") return
    const { tools, ...body } = JSON.parse(withFeature.policy.text)
    const isPass = (tool: { function: { name: string } }): boolean => tool.function.name === "pass_over"
    const others = JSON.stringify({ ...body, tools: tools.filter((tool: never) => !isPass(tool)) })
    expect(others).toBe(JSON.stringify({ ...body, tools: JSON.parse(without.policy.text).tools }))
    expect(JSON.stringify(tools.find(isPass)).length).toBeLessThanOrEqual(1_600)
  })
})

describe.each(endsOf(1))("OpenCode $version", (binary) => {
  test(promised("compaction.C8", "a summary that the user aborts leaves no record, its repetition one"), async () => {
    const asked = createDeferred<void>()
    const over = createDeferred<ModelReply>()
    const session = await openSession(binary, (at) => {
      if (at > 0) return { text: "The whole summary." }
      asked.resolve()
      return over.promise
    })
    const { client, ledger, taskID } = session.task
    const compaction = session.compact()
    await asked.promise
    await client.session.abort({ path: { id: session.id } })
    await compaction
    over.resolve({ text: "Too late." })
    expect((await ledger.show(taskID)).description).toBe(TASK.specification)
    await session.expectOneRecord("The whole summary.")
  })
})
