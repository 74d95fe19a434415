import type { ToolContext } from "@opencode-ai/plugin"
import type { Log } from "../../host/log.ts"
import { createStateFolder } from "../../host/state.ts"
import { createDecisions } from "../result/decisions.ts"
import { renderVerdict } from "../result/notify.ts"
import { renderResult } from "../result/render.ts"
import { findForeignResult, isOpen, type PassRecord } from "../store/record.ts"
import { openStoredPasses } from "../store/recover.ts"

/** `isDone: false`: it was refused, and the text says why. */
export type Answer = { readonly isDone: boolean; readonly text: string }

export type Decision = {
  readonly files: readonly string[] | undefined
  /** Applies the files that can be applied. */
  readonly partly: boolean
}

const REFUSAL = /^E\d{3} /m

/** Names the commands of a shell in place of an agent's tools. */
export const forPerson = (text: string): string =>
  text
    .replaceAll(/pass_over_(apply|reject) \{"pass_over_id":"([^"]+)"\}/g, "baton passes $1 $2")
    .replaceAll(/pass_over_status \{"pass_over_id":"([^"]+)"\}/g, "baton passes show $1")
    .replaceAll('(both take "artifacts": paths, for some of them)', "(both take --file PATH, for some of them)")
    .replaceAll("pass_over_status lists", "baton passes lists")
    .replaceAll(
      "Call pass_over_status without an id to see the passes of this session",
      "Look at the list of baton passes",
    )
    .replaceAll(/\b[Cc]all pass_over_status to see/g, "Look with baton passes show at")
    .replaceAll("ask pass_over_status", "look with baton passes show")
    .replaceAll("pass_over_status", "baton passes show")
    .replaceAll(/\b(?:Call )?pass_over_(apply|reject)\b/g, "baton passes $1")
    .replaceAll("apply the others by name, or reject.", "apply the others with --file, or reject.")

/** A person's look at a project's passes, and decisions on their files, by the rules of the originator's tools. */
export const createPersonsPasses = (projectRoot: string, log: Log) => {
  const state = createStateFolder(projectRoot)
  const { store, passes, sandboxes } = openStoredPasses({ projectRoot, directory: projectRoot, state, log })
  const decisions = createDecisions({
    store,
    passes,
    sandboxes,
    // Both are questions to the person who runs this.
    approve: async () => ({ kind: "approved", note: undefined }),
    mayWrite: async () => ({ kind: "granted" }),
    told: async () => {},
    log,
  })

  const withRecord = async (passID: string, answer: (record: PassRecord) => Promise<Answer>): Promise<Answer> => {
    const record = await store.read(passID)
    if (!record) return { isDone: false, text: `There is no pass ${passID} here; \`baton passes\` lists them.` }
    const error = findForeignResult(record)
    return error ? { isDone: false, text: `${passID}: ${error.message}` } : answer(record)
  }

  const contextOf = ({ request }: PassRecord): Pick<ToolContext, "sessionID" | "agent" | "ask"> => ({
    sessionID: request.originating_session_id,
    agent: request.originating_agent_id,
    ask: (() => Promise.resolve()) as unknown as ToolContext["ask"],
  })

  const chosen = (files: Decision["files"]) => (files === undefined ? {} : { artifacts: [...files] })

  const toAnswer = (text: string): Answer => ({ isDone: !REFUSAL.test(text), text: forPerson(text) })

  return {
    show: (passID: string) =>
      withRecord(passID, async ({ output, request, state: current }) => {
        const { subagent_id: subagent, originating_agent_id: originator, work_context: context, reason } = request
        const head = [
          `${passID}  ${originator} → ${subagent}  ${isOpen(current) ? current.state : renderVerdict(output)}`,
          `Reason: ${reason}`,
          `Objective: ${context.objective}`,
        ]
        const whole = output ? ["", renderResult(output, subagent, current, { isWhole: true })] : []
        return { isDone: true, text: forPerson([...head, ...whole].join("\n")) }
      }),
    diff: (passID: string) =>
      withRecord(passID, async ({ state: current }) => {
        // Collecting its files would end its sandbox.
        if (isOpen(current))
          return { isDone: false, text: `${passID} is ${current.state}: its files are not complete.` }
        const changes = await sandboxes.collect(passID)
        const shown = changes.kind === "refused" ? changes : await sandboxes.diff(passID)
        if (shown.kind === "refused") return { isDone: false, text: forPerson(`${shown.reason}. ${shown.fix}`) }
        return { isDone: true, text: shown.text.trimEnd() || "No file was changed." }
      }),
    apply: (passID: string, { files, partly }: Decision) =>
      withRecord(passID, async (record) => {
        const args = { pass_over_id: passID, all_or_nothing: !partly, ...chosen(files) }
        return toAnswer(await decisions.apply(args, contextOf(record)))
      }),
    reject: (passID: string, { files }: Pick<Decision, "files">) =>
      withRecord(passID, async (record) => {
        const args = { pass_over_id: passID, reason: "by a person, in the shell", ...chosen(files) }
        return toAnswer(await decisions.reject(args, contextOf(record)))
      }),
    /** Finishes what a crash cut off in the files of a pass. @returns `held`: the number of files that wait for a decision */
    restore: async (passID: string) => {
      const changes = await sandboxes.collect(passID)
      if (changes.kind === "refused") return { ...changes, fix: forPerson(changes.fix) }
      const { recovered: did, leftAlone, modifications } = changes
      const decided = (await store.read(passID))?.state
      const settled = decided && "applied" in decided ? [...decided.applied, ...decided.rejected] : []
      const held = modifications.filter(({ path }) => !settled.includes(path)).length
      return { kind: "restored" as const, did, leftAlone, held }
    },
  }
}
