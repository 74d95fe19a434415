import { countCommitsSince, readGitState } from "../host/git-state.ts"
import { describeError } from "../host/log.ts"
import type { ModelName } from "../host/model-context.ts"
import { createRecentMap } from "../host/recent-map.ts"
import type { SessionStore } from "../host/session-store.ts"
import type { Tui } from "../host/tui.ts"
import type { Ledger, TaskSummary } from "../ledger/ledger.ts"
import type { TaskBinding } from "../task/binding.ts"
import { parseGitFact } from "../task/facts.ts"
import { nearestNames } from "../task/nearest-names.ts"
import { createMeter, UNKNOWN_CONTEXT_TOKENS } from "./budget.ts"
import { type GatherDeps, type KnownTask, readKnownTask } from "./gather.ts"
import { parseHandoffTitle } from "./handoff-section.ts"
import type { Journals, Opening } from "./journal.ts"
import { type EarlierHandoff, type OpeningInput, openingProblem, renderOpening } from "./opening.ts"

export type OpeningDeps = Pick<GatherDeps, "prompts" | "run" | "root" | "log"> & {
  ledger: Pick<Ledger, "readTask" | "listTasks">
  journals: Pick<Journals, "load" | "update" | "save">
  bindings: Pick<SessionStore<TaskBinding>, "read">
  modelContext: (model: ModelName) => Promise<number | undefined>
  tui: Pick<Tui, "showToast">
}

export type Openings = {
  /** A user's message arrived: what its request needs is read beside what OpenCode does until then. */
  begin(binding: TaskBinding, model: ModelName): void
  /**
   * The text for a request, the same each time once the ledger has given the task.
   *
   * @param beside all that the message says beside which it stands
   */
  find(binding: TaskBinding, model: ModelName, beside: string): Promise<Opening>
  forget(sessionID: string): void
}

/** For all that is read for a request. */
const READ_DEADLINE_MS = 1_500
const TOAST_MS = 10_000

type Material = {
  taskID: string
  known: KnownTask
  nearest: readonly TaskSummary[]
  earlier?: EarlierHandoff
  contextTokens: number
}

/** The text beside the message that names a session's task: made once, kept with the session. */
export const createOpenings = (deps: OpeningDeps): Openings => {
  const { ledger, journals, bindings, modelContext, tui, run, root, log } = deps
  /** What was begun for the next request; undefined when there is nothing to look up again. */
  const reading = createRecentMap<Promise<Material | undefined>>()

  const findNearest = async (taskID: string, deadlineMs: number): Promise<readonly TaskSummary[]> => {
    const all = await ledger.listTasks({ deadlineMs })
    const ids = nearestNames(taskID, all?.map(({ id }) => id) ?? [])
    return ids.flatMap((id) => all?.find((task) => task.id === id) ?? [])
  }

  const readEarlier = async (
    { sessionID, taskID }: TaskBinding,
    handoff: string | undefined,
  ): Promise<EarlierHandoff | undefined> => {
    const title = handoff === undefined ? undefined : parseHandoffTitle(handoff)
    // A session's own handoff is in its conversation.
    if (handoff === undefined || !title || title.sessionID === sessionID) return undefined
    const then = parseGitFact(handoff)
    const [now, commitsSince, other] = await Promise.all([
      readGitState(run, root),
      then && countCommitsSince(run, root, then.head),
      bindings.read(title.sessionID),
    ])
    return {
      title,
      text: handoff.slice(handoff.indexOf("\n") + 1).trim(),
      ...(other?.taskID === taskID ? { brief: other.brief } : {}),
      ...(then && now.kind === "found"
        ? { git: { then, now: now.git, ...(commitsSince === undefined ? {} : { commitsSince }) } }
        : {}),
    }
  }

  const contextOf = async ({ sessionID }: TaskBinding, model: ModelName): Promise<number> =>
    (await journals.load(sessionID)).contextTokens ?? (await modelContext(model)) ?? UNKNOWN_CONTEXT_TOKENS

  const read = async (binding: TaskBinding, model: ModelName): Promise<Material> => {
    const over = performance.now() + READ_DEADLINE_MS
    const [known, contextTokens] = await Promise.all([
      readKnownTask(deps, binding, READ_DEADLINE_MS),
      contextOf(binding, model),
    ])
    const left = over - performance.now()
    const nearest = known.identity.ledger === "unknown" && left > 0 ? await findNearest(binding.taskID, left) : []
    const earlier = known.identity.isChild ? undefined : await readEarlier(binding, known.handoff)
    return { taskID: binding.taskID, known, nearest, contextTokens, ...(earlier ? { earlier } : {}) }
  }

  const isOf = (opening: Opening | undefined, { taskID, role }: TaskBinding): opening is Opening =>
    opening?.taskID === taskID && opening.role === role

  const tell = (input: OpeningInput, before: Opening | undefined): string | undefined => {
    const problem = input.identity.isChild ? undefined : openingProblem(input)
    if (problem && problem.key !== before?.problem) {
      const { title, message } = problem
      void tui.showToast({ title, message, variant: "warning", durationMs: TOAST_MS })
    }
    return problem?.key
  }

  return {
    begin: (binding, model) => {
      const { sessionID } = binding
      const begun = journals
        .load(sessionID)
        .then(({ opening }) => (isOf(opening, binding) && opening.isComplete ? undefined : read(binding, model)))
      reading.set(sessionID, begun)
      begun.catch((error: unknown) =>
        log.warn("the task is not read for the request yet", { sessionID, error: describeError(error) }),
      )
    },
    find: async (binding, model, beside) => {
      const { sessionID, taskID, role } = binding
      const { opening: known } = await journals.load(sessionID)
      const before = isOf(known, binding) ? known : undefined
      const begun = reading.get(sessionID)
      if (before && (before.isComplete || !begun)) return before
      reading.delete(sessionID)
      const early = await begun
      const material = early?.taskID === taskID ? early : await read(binding, model)
      const { nearest, earlier, contextTokens } = material
      const { identity, logs, failure } = material.known
      const input: OpeningInput = {
        identity: { ...identity, brief: beside },
        nearest,
        logs,
        meter: createMeter(contextTokens),
        ...(failure === undefined ? {} : { failure }),
        ...(earlier ? { earlier } : {}),
      }
      const isComplete = typeof identity.ledger === "object"
      const opening: Opening = { taskID, role, text: renderOpening(input), isComplete, problem: tell(input, before) }
      await journals.update(sessionID, (journal) => ({ ...journal, opening }))
      void journals.save(sessionID)
      log.info("the request begins with the task", { sessionID, taskID, characters: opening.text.length, isComplete })
      return opening
    },
    forget: (sessionID) => void reading.delete(sessionID),
  }
}
