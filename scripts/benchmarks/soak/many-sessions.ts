import type { OpenCodeBinary } from "../../../test/support/opencode-binary.ts"
import { eventually } from "../../../test/support/opencode-server.ts"
import type { Script } from "../../../test/support/scripted-model.ts"
import { type Arm, type Both, onBoth, untilDelivered, withArms } from "./arm.ts"
import type { Sample } from "./sample.ts"
import { EXTRAS, openDirectories, type SoakDirectory } from "./soak-directories.ts"
import { hasStatefile, measureState, type StateSize } from "./state-size.ts"

const CONTEXT_TOKENS = 20_000_000
const WRITERS_MS = 60_000
/** In the first all code is loaded; connections to the model are still opened in the second, and kept by OpenCode's runtime. */
const WARM_UPS = 2

export type ServerPoint = { readonly sessions: number; readonly state: StateSize } & Both<Sample>

export type ManySessions = {
  readonly version: string
  readonly directories: number
  /** After sessions of each kind in each directory were deleted: everything is loaded, and nothing is open. */
  readonly before: ServerPoint
  /** While more and more are open. */
  readonly points: readonly ServerPoint[]
  readonly deleted: ServerPoint
  readonly disposed: ServerPoint
}

const REVIEW = { subagent: "audit", objective: "REVIEW-THIS please", reason: "review" }
const REVIEWED = { status: "completed", decision: "approved", summary: "It is right.", findings: [] }

/** An agent that does what the newest message of its session says; a reviewer returns at once. */
const script: Script = ({ kind, conversation, tools }) => {
  if (kind === "compaction") return { text: "Something was done." }
  const last = conversation.slice(conversation.lastIndexOf("[user]"))
  const offered = (tool: string, input: Record<string, unknown>) =>
    tools.includes(tool) ? { tool, input } : { text: "There is no such tool." }
  if (last.includes("[tool]")) return { text: "Done." }
  if (last.includes("Hand this work over"))
    return offered("handoff_session", { prompt: "Go on with it.", files: ["README.md"] })
  const read = /Read (ses_\w+)/.exec(last)?.[1]
  if (read !== undefined) return offered("read_session", { sessionID: read })
  if (last.includes("REVIEW-THIS")) return offered("pass_over_return", REVIEWED)
  if (last.includes("DELEGATE")) return offered("pass_over", REVIEW)
  if (last.includes("a step")) return { tool: "read", input: { filePath: "README.md" } }
  return { text: "It is done." }
}

/** One server, ever more sessions in each of its directories, then none; with the bundle and without it side by side. */
export const measureManySessions = (
  binary: OpenCodeBinary,
  { directories, each, say }: { directories: number; each: number; say: (text: string) => void },
): Promise<ManySessions> =>
  withArms(binary, script, { context: CONTEXT_TOKENS, config: { snapshot: false } }, async (arms) => {
    const opened = await onBoth(arms, (arm) => openDirectories(arm, directories))
    const inEach = (work: (directory: SoakDirectory) => Promise<void>) =>
      onBoth(opened, async (all) => {
        for (const directory of all) await work(directory)
      })
    const folders = opened.with.map(({ path }) => path)
    const look = async (sessions: number, ask = (arm: Arm) => arm.sample()): Promise<ServerPoint> => {
      await untilDelivered(folders)
      const samples = await onBoth(arms, ask)
      return { sessions, ...samples, state: measureState(arms.with.project, folders) }
    }
    for (let warmUp = 0; warmUp < WARM_UPS; warmUp++) {
      await inEach(({ work }) => work(warmUp, EXTRAS))
      await eventually("a statefile in each directory", () => folders.every(hasStatefile) || undefined, WRITERS_MS)
      await inEach(({ deleteAll }) => deleteAll())
    }
    const before = await look(0)
    const points: ServerPoint[] = []
    for (let n = 0; n < each; n++) {
      await inEach(({ work }) => work(n, EXTRAS.slice(n, n + 1)))
      points.push(await look((n + 1) * directories))
      say(`  ${(n + 1) * directories} of ${each * directories} sessions`)
    }
    await inEach(({ deleteAll }) => deleteAll())
    const deleted = await look(0)
    const disposed = await look(0, ({ dispose }) => dispose())
    return { version: binary.version, directories, before, points, deleted, disposed }
  })
