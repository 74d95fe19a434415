import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import type { OpenCodeBinary } from "../../../test/support/opencode-binary.ts"
import type { Script } from "../../../test/support/scripted-model.ts"
import { openTestLedger } from "../../../test/support/test-ledger.ts"
import { type Arm, type Both, onBoth, untilDelivered, withArms } from "./arm.ts"
import type { Sample } from "./sample.ts"
import { measureState, type StateSize } from "./state-size.ts"
import { createStoredTurns } from "./stored-turns.ts"

/** A user's message, a tool's step, and the last words. */
const TURN_MESSAGES = 3
const STORED_TURNS = 12
const CONTEXT_TOKENS = 200_000
/** In a user's message: the step that follows fills the context, and OpenCode compacts behind it. */
const FILL = "Fill the context."
/** From the first round on, so that what learning loads is there at the first sample. */
const LEARNS_EVERY = 50

export type SoakPoint = { readonly compactions: number; readonly state: StateSize } & Both<Sample>

export type LongSession = {
  readonly version: string
  readonly messages: number
  readonly points: readonly SoakPoint[]
  /** Of each turn, in milliseconds. */
  readonly turnMs: Both<readonly number[]>
  readonly disposed: Both<Sample>
}

const script: Script = ({ kind, index, conversation }) => {
  if (kind === "compaction") return { text: `## Done\n- Round ${index} is done.\n\n## Next\n- Go on.\n` }
  const last = conversation.slice(conversation.lastIndexOf("[user]"))
  const isStep = last.includes("a step") && !last.includes("[tool]")
  const step = { tool: "read", input: { filePath: "README.md" } }
  if (last.includes(FILL)) return { ...step, promptTokens: CONTEXT_TOKENS }
  return isStep ? step : { text: "It is done." }
}

const wordsOf = (round: number): string => {
  const isTaught = round % LEARNS_EVERY === 1
  const work = isTaught ? `No, use ${round} spaces instead of tabs in file ${round}.` : `Go on with round ${round}.`
  return `${work} ${FILL}`
}

const openSession = async (arm: Arm) => {
  const { client } = arm.server
  const task = { title: "Keep going", specification: "Take steps.", definitionOfDone: "Nothing grows." }
  const taskID = await openTestLedger(arm.project, arm.binary).addTask(task)
  const id = (await client.session.create({ body: { title: "Soak" } })).data?.id ?? ""
  const say = async (text: string): Promise<number> => {
    const started = performance.now()
    const { data, error } = await client.session.prompt({ path: { id }, body: { parts: [{ type: "text", text }] } })
    if (error || data?.info.error) throw new Error(`a turn failed: ${JSON.stringify(error ?? data?.info.error)}`)
    return performance.now() - started
  }
  await say(`# Worker\n\nTask: ${taskID}\n\nTake a step.\n`)
  const turns = createStoredTurns(arm.project, id, TURN_MESSAGES)
  const journal = join(arm.project.directory, ".opencode/state/compactions", `${id}.json`)
  const recorded = (): number => (existsSync(journal) ? JSON.parse(readFileSync(journal, "utf8")).count : 0)
  return {
    /** @returns milliseconds of a turn with a compaction in the middle */
    cycle: async (round: number): Promise<number> => {
      await turns.repeat(STORED_TURNS)
      return say(wordsOf(round))
    },
    sample: async (round: number): Promise<Sample> => {
      // A compaction that could not be recorded at once is recorded by the turn after it.
      await say(`Look back at round ${round}.`)
      if (arm.isWithBundle) await untilDelivered([arm.project.directory], () => recorded() === round)
      return arm.sample()
    },
    messages: () => turns.count(),
    close: () => turns.close(),
  }
}

/** One session through `rounds` compactions, about 40 messages to each, with the bundle and without it side by side. */
export const measureLongSession = (
  binary: OpenCodeBinary,
  { rounds, sampleEvery, say }: { rounds: number; sampleEvery: number; say: (text: string) => void },
): Promise<LongSession> =>
  withArms(binary, script, { context: CONTEXT_TOKENS, config: { snapshot: false } }, async (arms) => {
    const sessions = await onBoth(arms, openSession)
    const points: SoakPoint[] = []
    const turnMs = { with: [] as number[], without: [] as number[] }
    for (let round = 1; round <= rounds; round++) {
      const ms = await onBoth(sessions, ({ cycle }) => cycle(round))
      turnMs.with.push(ms.with)
      turnMs.without.push(ms.without)
      if (round % sampleEvery !== 0) continue
      const samples = await onBoth(sessions, ({ sample }) => sample(round))
      const { project } = arms.with
      points.push({ compactions: round, ...samples, state: measureState(project, [project.directory]) })
      if (points.length % 10 === 0) say(`  ${round} of ${rounds} compactions`)
    }
    const messages = sessions.with.messages()
    const disposed = await onBoth(arms, ({ dispose }) => dispose())
    await onBoth(sessions, async ({ close }) => close())
    return { version: binary.version, messages, points, turnMs, disposed }
  })
