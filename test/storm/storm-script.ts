import { type ChildBehaviour, CORRECTION, type RootBehaviour } from "../support/faults/fault.ts"
import { isCompanion } from "../support/faults/fault-claim-table.ts"
import { isOrdered, passOver, returns, stepsMade } from "../support/model/pass-over-script.ts"
import { COMPACTING_PROMPT_TOKENS } from "../support/model/retention.ts"
import { inForm } from "../support/model/retention-2.ts"
import { bash, type ModelReply, type ModelRequest, newestWords } from "../support/model/scripted-model.ts"
import { FULL_TOKENS } from "../support/opencode/tokens-2.ts"
import type { Step, Turn } from "./plan.ts"

/** A file that an agent writes: its old content (undefined: none), and its possible content until the write is confirmed. */
export type WrittenFile = { certain: string | undefined; possible?: string; isHeld?: boolean }

/** The observed actions of a storm's agents, which Baton must record. */
export type Seen = {
  summaries: string[]
  /**
   * Summaries that a turn followed before the next one. The text of a summary whose OpenCode was killed while it stored it stays in
   * the conversation, too, beside the summary that OpenCode then asks for.
   */
  followed: Set<string>
  /** Ids of passes that the root agent was told. */
  passes: Set<string>
  /** Passes whose result the root agent was told. */
  results: Set<string>
  /** New sessions named in the answer to a handoff. */
  handoffs: Set<string>
  /** The correction reached the model. */
  corrected: boolean
  files: Map<string, WrittenFile>
}

type Move = (request: ModelRequest) => ModelReply | undefined

const PASS_ID = /\bpass_\d{17}_[0-9a-z]+/g
export const SHARED_FILE = "src/a.ts"
export const SHARED_CONTENT = "export const a = 1\n"
const UNKNOWN_PASS = "pass_20260101000000000_abcd"

const LONGEST_SILENCE_MS = 30_000

const FAILED: ModelReply = { status: 400, message: "the scripted model fails" }
const DONE: ModelReply = { text: "Done." }

const work = (conversation: string): ModelReply[] => {
  const number = /CODE-THIS (\d+)/.exec(conversation)?.[1]
  if (number === undefined) return [returns({ decision: "approved", findings: [] })]
  return [
    { tool: "write", input: { filePath: `coded/${number}.txt`, content: `coded ${number}\n` } },
    bash(`echo coded ${number} > ${SHARED_FILE}`),
    returns(),
  ]
}

/** The next step of a subagent. @param ended resolves when the run in which it hangs is over */
const childReply = async (
  request: ModelRequest,
  behaviour: ChildBehaviour,
  ended: Promise<void>,
): Promise<ModelReply> => {
  const { kind, conversation } = request
  if (kind === "compaction") return { text: "A subagent's summary." }
  if (behaviour === "hang") {
    await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, LONGEST_SILENCE_MS).unref())])
    return DONE
  }
  const steps = work(conversation)
  const before = steps.slice(0, -1)
  const itself = conversation.includes("CODE-THIS") ? "coder" : "audit"
  const behaviours: Record<Exclude<ChildBehaviour, "hang">, ModelReply[]> = {
    work: steps,
    crash: [FAILED],
    "crash late": [...before, FAILED],
    prose: [...before, { text: "I am done, more or less." }],
    "wrong return": [...before, ...[1, 2, 3].map(() => returns({ status: "great" }))],
    deeper: [passOver({ subagent: "second", objective: "REVIEW-THIS deeper" }), ...steps],
    cycle: [passOver({ subagent: itself, objective: "AGAIN" }), ...steps],
  }
  return behaviours[behaviour][stepsMade(request)] ?? DONE
}

const lastAnswer = (request: ModelRequest): string => newestWords(request).split("[tool] ").slice(1).at(-1) ?? ""

/** Creates the agents of one storm and records their actions. */
export const createStormScript = (options: {
  seed: number
  /** The tools have the names of OpenCode 2, whose context is larger. */
  isLine2?: boolean
  child?: ChildBehaviour | undefined
  root?: RootBehaviour | undefined
  handoffFiles?: readonly string[]
  correction?: string
  /** Called before each request of the root session is answered; the first of a turn is 1. */
  onRequest?: (turn: number, request: number) => Promise<void>
  /** Awaited in the clean run. */
  settle?: () => Promise<void>
}) => {
  const { seed, child = "work", root, handoffFiles = [], correction = CORRECTION } = options
  const seen: Seen = {
    summaries: [],
    followed: new Set(),
    passes: new Set(),
    results: new Set(),
    handoffs: new Set(),
    corrected: false,
    files: new Map([[SHARED_FILE, { certain: SHARED_CONTENT }]]),
  }
  let [turnIndex, requests, numbered, isClean] = [-1, 0, 0, false]
  let moves: Move[] = []
  let endTurn = (): void => {}
  let turnEnded: Promise<void> = Promise.resolve()

  /** @param isHeld comes from a pass: the file exists only after the answer confirms it */
  const mayHold = (path: string, content: string, isHeld = false): void => {
    seen.files.set(path, { certain: seen.files.get(path)?.certain, possible: content, isHeld })
  }
  /** After an answer to the agent its files are written. */
  const settleFiles = (answer: string): void => {
    for (const [path, { certain, possible, isHeld }] of seen.files) {
      if (possible === undefined) continue
      const isThere = !isHeld || answer.includes(`- ${path}: applied`)
      seen.files.set(path, { certain: isThere ? possible : certain })
    }
  }

  const write = (number: number): Move => {
    const [filePath, content] = [`work/${number}.txt`, `work ${number}\n`]
    return () => {
      mayHold(filePath, content)
      return { tool: "write", input: { filePath, content } }
    }
  }
  const review: Move = () =>
    passOver({
      subagent: root === "unknown subagent" ? "nobody" : "audit",
      objective: "REVIEW-THIS please",
      files: [SHARED_FILE, "../sibling/secret.txt", "link-out/secret.txt"],
    })

  const code = (number: number): Move[] => {
    const content = `coded ${number}\n`
    let passID: string | undefined
    const apply = (): ModelReply | undefined => {
      if (passID === undefined) return undefined
      mayHold(SHARED_FILE, content, true)
      mayHold(`coded/${number}.txt`, content, true)
      return { tool: "pass_over_apply", input: { pass_over_id: passID } }
    }
    const remember: Move = (request) => {
      const answer = lastAnswer(request)
      if (/ are pending,/.test(answer)) passID = answer.match(PASS_ID)?.[0]
      if (root === "conflict") {
        mayHold(SHARED_FILE, `mine ${number}\n`)
        return bash(`echo mine ${number} > ${SHARED_FILE}`)
      }
      if (root === "unknown pass") return { tool: "pass_over_apply", input: { pass_over_id: UNKNOWN_PASS } }
      return apply()
    }
    const subagent = root === "unknown subagent" ? "nobody" : "coder"
    const again = root === "conflict" || root === "unknown pass" || root === "applied twice"
    return [() => passOver({ subagent, objective: `CODE-THIS ${number}` }), remember, ...(again ? [apply] : [])]
  }

  const movesOf: Record<Step, () => Move[]> = {
    write: () => [write(++numbered)],
    compact: () => [() => bash("echo a step", options.isLine2 ? FULL_TOKENS : COMPACTING_PROMPT_TOKENS)],
    review: () => (root === "one more pass" ? [review, review] : [review]),
    code: () => code(++numbered),
  }

  const handOver: Move = () => ({
    tool: "handoff_session",
    input: { prompt: "Finish the parser.", files: [SHARED_FILE, "link-out/secret.txt", ...handoffFiles] },
  })

  const note = (request: ModelRequest): void => {
    const { conversation } = request
    const newest = seen.summaries.at(-1)
    if (newest !== undefined && conversation.includes(newest)) seen.followed.add(newest)
    if (conversation.includes(correction)) seen.corrected = true
    const answer = lastAnswer(request)
    for (const id of answer.match(PASS_ID) ?? []) if (id !== UNKNOWN_PASS) seen.passes.add(id)
    const result = /(pass_\d{17}_[0-9a-z]+): \w+ → /.exec(answer)?.[1]
    if (result !== undefined && !/E00[1-4]|E0[23]0/.test(answer)) seen.results.add(result)
    const to = /stored in the new session (ses_\w+)/.exec(answer)?.[1]
    if (to !== undefined) seen.handoffs.add(to)
    settleFiles(answer)
  }

  const answer = async (request: ModelRequest): Promise<ModelReply> => {
    if (isCompanion(request.conversation))
      return /\bTask: ts-/.test(request.conversation) && stepsMade(request) === 0
        ? bash("echo a companion")
        : { text: "It is late." }
    if (isOrdered(request)) return await childReply(request, child, turnEnded)
    requests += 1
    if (isClean) {
      await options.settle?.()
      return { text: "Finished." }
    }
    await options.onRequest?.(turnIndex, requests)
    if (request.kind === "compaction") {
      const summary = `Summary ${seen.summaries.length + 1} of storm ${seed}.`
      seen.summaries.push(summary)
      return { text: options.isLine2 ? inForm(request, `- ${summary}`) : summary }
    }
    note(request)
    for (let move = moves.shift(); move; move = moves.shift()) {
      const reply = move(request)
      if (reply !== undefined) return reply
    }
    return { text: "Finished." }
  }

  return {
    script: answer,
    seen: seen as Readonly<Seen>,
    beginTurn: (index: number, turn: Turn): void => {
      turnIndex = index
      requests = 0
      moves = [...(turn.kind === "handoff" ? [handOver] : []), ...turn.steps.flatMap((step) => movesOf[step]())]
      turnEnded = new Promise((resolve) => {
        endTurn = resolve
      })
    },
    endTurn: (): void => endTurn(),
    beginCleanRun: (): void => {
      isClean = true
    },
  }
}
