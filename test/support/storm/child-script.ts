import { passOver, returns } from "../pass-over-script.ts"
import type { ModelReply, ModelRequest } from "../scripted-model.ts"
import type { ChildBehaviour } from "./storm-fault.ts"

const ORDER = /The agent (\S+) passes this work over to you/
const FIRST_CHARACTERS = 300
const LONGEST_SILENCE_MS = 30_000

/** Whether a subagent asks, and not the root agent. */
export const isOrdered = (conversation: string): boolean => ORDER.test(conversation.slice(0, FIRST_CHARACTERS))

const stepsMade = (conversation: string): number =>
  conversation.slice(conversation.lastIndexOf("[user]")).match(/^\[tool\] /gm)?.length ?? 0

const FAILED: ModelReply = { status: 400, message: "the scripted model fails" }
const DONE: ModelReply = { text: "Done." }

const bash = (command: string): ModelReply => ({ tool: "bash", input: { command, description: "A step" } })

const work = (conversation: string): ModelReply[] => {
  const number = /CODE-THIS (\d+)/.exec(conversation)?.[1]
  if (number === undefined) return [returns({ decision: "approved", findings: [] })]
  const content = `coded ${number}\n`
  return [
    { tool: "write", input: { filePath: `coded/${number}.txt`, content } },
    bash(`echo coded ${number} > src/a.ts`),
    returns(),
  ]
}

const stepsOf = (conversation: string, behaviour: ChildBehaviour | undefined): ModelReply[] => {
  const steps = work(conversation)
  switch (behaviour) {
    case undefined:
    case "hang":
      return steps
    case "crash":
      return [FAILED]
    case "crash late":
      return [...steps.slice(0, -1), FAILED]
    case "prose":
      return [...steps.slice(0, -1), { text: "I am done, more or less." }]
    case "wrong return":
      return [...steps.slice(0, -1), ...[1, 2, 3].map(() => returns({ status: "great" }))]
    case "deeper":
      return [passOver({ subagent: "second", objective: "REVIEW-THIS deeper" }), ...steps]
    case "cycle":
      return [
        passOver({ subagent: conversation.includes("CODE-THIS") ? "coder" : "audit", objective: "AGAIN" }),
        ...steps,
      ]
  }
}

/** What a subagent does next. @param ended when the run in which it hangs is over */
export const childReply = async (
  { kind, conversation }: ModelRequest,
  behaviour: ChildBehaviour | undefined,
  ended: () => Promise<void>,
): Promise<ModelReply> => {
  if (kind === "compaction") return { text: "A subagent's summary." }
  if (behaviour === "hang") {
    await Promise.race([ended(), new Promise((resolve) => setTimeout(resolve, LONGEST_SILENCE_MS).unref())])
    return DONE
  }
  const steps = stepsOf(conversation, behaviour)
  return steps[stepsMade(conversation)] ?? DONE
}
