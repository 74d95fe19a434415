import type { PassRecord } from "./pass-record.ts"
import type { Decisions } from "./pass-state.ts"
import type { Passes } from "./passes.ts"
import type { PassWorktree, Refusal } from "./worktree/worktree.ts"

const hasFiles = ({ undecided, applied, rejected }: Decisions): boolean =>
  [undecided, applied, rejected].some(({ length }) => length > 0)

/**
 * Brings files into a result that could not be stored when it came: the disk was full, git did not answer. Their copy, or
 * what `baton passes restore` made of it, is still there.
 */
export const createFilesCollector =
  ({ worktree, passes }: { worktree: Pick<PassWorktree, "restore" | "changes">; passes: Pick<Passes, "advance"> }) =>
  async (record: PassRecord): Promise<{ readonly kind: "collected"; readonly record: PassRecord } | Refusal> => {
    const { state, output, request } = record
    if (state.state !== "returned" || output === null || hasFiles(state)) return { kind: "collected", record }
    const id = request.pass_over_id
    const restored = await worktree.restore(id)
    const changes = restored.kind === "restored" ? await worktree.changes(id) : restored
    // A pass that could change nothing.
    if (changes.kind === "refused") return changes.code === "unknown-pass" ? { kind: "collected", record } : changes
    const { modifications } = changes
    if (modifications.length === 0) return { kind: "collected", record }
    const whole = { ...output, artifacts: [...modifications, ...output.artifacts], left_out: changes.leftOut }
    const paths = modifications.map(({ path }) => path)
    const moved = await passes.advance(id, { type: "collected", paths }, { output: whole })
    return { kind: "collected", record: moved.kind === "moved" ? moved.record : record }
  }
