import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { onTestFinished, vi } from "vitest"
import { createServices } from "../../../.opencode/baton/core/services.ts"
import type { StartTimer } from "../../../.opencode/baton/host/async.ts"
import type { PermissionRule } from "../../../.opencode/baton/host/permissions.ts"
import { openState } from "../../../.opencode/baton/host/state.ts"
import { createPassOverFeature, type PassContext } from "../../../.opencode/baton/pass-over/feature.ts"
import type { PassRecord } from "../../../.opencode/baton/pass-over/store/record.ts"
import { createRecordedLog } from "../recorded-log.ts"
import { type AgentTurn, createFakeOpenCode, type FakeAgent, type Faults, fakeToolContext } from "./fake-opencode.ts"
import { createRepository, type Files } from "./pass-project.ts"

/** Values of `defaults` that remove all waits from a test. */
const QUICK = { auto_return: true, retry_delay_ms: 1, max_retries: 0 }

/** The return of a subagent that did its work. */
export const DONE = { status: "completed", summary: "Done." }

/** Keeps a turn open until it is aborted. */
export const speakOn = ({ signal }: AgentTurn): Promise<void> =>
  new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }))

/** A subagent that writes these files and returns. */
export const writing =
  (files: Readonly<Record<string, string>>, answer: unknown = DONE): FakeAgent =>
  async ({ write, giveBack }) => {
    for (const [path, content] of Object.entries(files)) await write(path, content)
    await giveBack(answer)
  }

/**
 * Opens the whole feature on a repository in a temporary folder, with OpenCode's sessions in memory; its agents are
 * `coder` and `second`.
 */
export const openFeaturePasses = ({
  defaults = {},
  subagents = {},
  files = { "a.txt": "a\n" },
  faults,
  rules,
  startTimer,
  ...agents
}: {
  coder?: FakeAgent
  second?: FakeAgent
  defaults?: Readonly<Record<string, unknown>>
  subagents?: Readonly<Record<string, unknown>>
  files?: Files
  faults?: Faults
  rules?: readonly PermissionRule[]
  /** Of the clocks of a child's work. */
  startTimer?: StartTimer
} = {}) => {
  const policy = JSON.stringify({ defaults: { ...QUICK, ...defaults }, subagents })
  const root = createRepository({ ".opencode/pass-over.json": policy, ...files })
  const opencode = createFakeOpenCode({
    directory: root,
    agents,
    ...(faults ? { faults } : {}),
    ...(rules ? { rules } : {}),
  })
  const log = createRecordedLog()
  const calls = new Set<Promise<string>>()
  /** A call writes on after its pass has ended. */
  const awaited = (call: Promise<string>): Promise<string> => {
    calls.add(call)
    return call
  }
  /** Starts the feature as OpenCode does; the sessions stay. */
  const start = () => {
    const { input } = opencode
    const state = openState(input.client, root, log)
    const services = createServices({ input, projectRoot: root, state, parents: new Map(), log })
    const feature = createPassOverFeature({ input, projectRoot: root, root }, services, log, startTimer)
    opencode.connect(feature)
    onTestFinished(async () => {
      await feature.stop()
      await Promise.allSettled(calls)
      // Of a session without passes, for which nothing but the recovery is waited for.
      await feature.receive({ type: "session.idle", properties: { sessionID: "ses_none" } })
      services.stop()
    })
    return feature
  }
  const feature = start()
  const folder = join(root, ".opencode", "state", "pass-over")
  const recordOf = (id: string): PassRecord => JSON.parse(readFileSync(join(folder, id, "pass.json"), "utf8"))
  /** Passes of this project, oldest first. */
  const ids = (): string[] => readdirSync(folder).filter((name) => name.startsWith("pass_"))
  const context = () => fakeToolContext(opencode.rootID)
  const made = async (args: { subagent: string; objective?: string }, by: PassContext): Promise<string> =>
    (await feature.pass({ objective: "Work", reason: "test", messages: 0, ...args }, by)).text
  return {
    root,
    policyPath: join(root, ".opencode", "pass-over.json"),
    opencode,
    log,
    feature,
    start,
    folder,
    recordOf,
    ids,
    /** The root session's messages. */
    told: (): string => JSON.stringify(opencode.messagesOf(opencode.rootID)),
    /** The oldest pass. */
    id: (): string => ids()[0] ?? "",
    /** Where the child of the oldest pass works. */
    copy: (...path: string[]): string => join(folder, ids()[0] ?? "", "copy", ...path),
    /** Waits until the newest pass is in a state. */
    reaches: (state: string): Promise<string> =>
      vi.waitFor(
        () => {
          const id = ids().at(-1) ?? ""
          if (recordOf(id).state.state !== state) throw new Error(`${id} is ${recordOf(id).state.state}`)
          return id
        },
        { timeout: 20_000, interval: 10 },
      ),
    pass: (args: Record<string, unknown> = {}, by = context()) => awaited(made({ subagent: "coder", ...args }, by)),
    /** Has `coder` pass on to `second`. */
    passOn: ({ sessionID }: AgentTurn, args: Record<string, unknown> = {}) => {
      const by = { ...fakeToolContext(sessionID), agent: "coder" }
      return awaited(made({ subagent: "second", objective: "Inner", ...args }, by))
    },
    /** The root's tool calls about the oldest pass. */
    status: (by = context()) => feature.status({ pass_over_id: ids()[0] ?? "" }, by),
    apply: (args: Record<string, unknown> = {}, by = context()) =>
      feature.apply({ pass_over_id: ids()[0] ?? "", ...args }, by),
    reject: () => feature.reject({ pass_over_id: ids()[0] ?? "" }, context()),
  }
}
