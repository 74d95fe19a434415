import { type ModelReply, type ModelRequest, newestWords, type Script } from "./scripted-model.ts"

type Step = (request: ModelRequest) => ModelReply | Promise<ModelReply>

/** The steps of a scripted agent; the last step is repeated. */
export type AgentScript = readonly (ModelReply | Step)[]

/** Message that starts the root agent's work; it answers other messages with a word. */
export const START = "Go."

const ORDER = /The agent (\S+) passes this work over to you/

/** Tells a subagent's conversation from the root agent's. */
export const isOrdered = ({ conversation }: ModelRequest): boolean => ORDER.test(conversation.slice(0, 300))

/** Steps made by this request's agent: tool answers in its conversation since the last message to it. */
export const stepsMade = (request: ModelRequest): number => newestWords(request).match(/^\[tool\] /gm)?.length ?? 0

/**
 * Agents that are told apart by a word in their objective; the agent without an order is `root`.
 *
 * @param agents by the word in the order, such as `REVIEW-IT`
 */
export const passOverScript =
  ({ root, agents = {} }: { root: AgentScript; agents?: Record<string, AgentScript> }): Script =>
  (request) => {
    if (request.kind === "compaction") return { text: "A summary." }
    const { conversation } = request
    const first = conversation.slice(0, conversation.indexOf("\n\n[", 1) + 1 || undefined)
    // The context of an order may hold words of other orders.
    const order = first.slice(0, first.indexOf("# Context of the work") + 1 || undefined)
    const word = Object.keys(agents).find((each) => isOrdered(request) && order.includes(each))
    if (!isOrdered(request) && !newestWords(request).includes(START)) return { text: "Noted." }
    const script = word === undefined ? root : (agents[word] ?? root)
    const step = script[Math.min(stepsMade(request), script.length - 1)] ?? { text: "Done." }
    return typeof step === "function" ? step(request) : step
  }

export const passOver = (input: Record<string, unknown>): ModelReply => ({
  tool: "pass_over",
  input: { reason: "test", ...input },
})

export const returns = (input: Record<string, unknown> = {}): ModelReply => ({
  tool: "pass_over_return",
  input: { status: "completed", summary: "All looked at.", ...input },
})

/**
 * A reviewer that judges by what it was given to read: it reads these files, searches one, and wants a change for each line that
 * holds the fault.
 */
export const reviews = (files: readonly string[], fault: string): AgentScript => [
  ...files.map((filePath) => ({ tool: "read", input: { filePath } })),
  { tool: "grep", input: { pattern: "export" } },
  (request) => {
    const answers = newestWords(request).split("\n\n[tool] ").slice(1)
    const findings = files.flatMap((path, at) => {
      const lines = (answers[at] ?? "").split("\n").filter((line) => line.includes(fault))
      return lines.map((line) => ({
        severity: "error",
        path,
        line: Number(/\d+/.exec(line)?.[0]),
        message: line.trim(),
      }))
    })
    const decision = findings.length === 0 ? "approved" : "changes_requested"
    return returns({ decision, summary: `${findings.length} faults seen.`, findings })
  },
  { text: "Done." },
]

/** The root agent's newest tool answer. */
export const lastToolAnswer = (requests: readonly ModelRequest[]): string => {
  const own = requests.filter((request) => request.kind === "turn" && !isOrdered(request))
  const conversation = own.at(-1)?.conversation ?? ""
  return conversation.slice(conversation.lastIndexOf("[tool] "))
}
