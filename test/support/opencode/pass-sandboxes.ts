import type { Log } from "../../../.opencode/baton/host/log.ts"
import type { RunProcess } from "../../../.opencode/baton/host/process.ts"
import { createStateFolder, type StateFolder } from "../../../.opencode/baton/host/state.ts"
import { type FileResult, isApplied } from "../../../.opencode/baton/pass-over/sandbox/apply.ts"
import type { Refusal } from "../../../.opencode/baton/pass-over/sandbox/repository.ts"
import {
  type Changes,
  createSandboxes,
  type Sandbox,
  type SandboxOptions,
} from "../../../.opencode/baton/pass-over/sandbox/sandbox.ts"
import type { FreeSpace } from "../../../.opencode/baton/pass-over/sandbox/snapshot.ts"
import { listPending } from "../../../.opencode/baton/pass-over/sandbox/stored.ts"
import { createPasses } from "../../../.opencode/baton/pass-over/store/passes.ts"
import { isOpen, isPassID } from "../../../.opencode/baton/pass-over/store/record.ts"
import { createPassOwners, createPassStore } from "../../../.opencode/baton/pass-over/store/store.ts"
import { passMetadata, passRecord, passRequest } from "./pass-over-values.ts"

/** The id of a pass that a test calls `p1`; what is no such name stays as it is. */
export const idOf = (name: string): string =>
  /^[a-z]+\d*$/.test(name) ? `pass_20260101000000000_${name.padEnd(4, "x")}` : name

type ApplyOptions = { readonly paths?: readonly string[]; readonly allOrNothing?: boolean }
type Applied = { kind: "applied"; complete: boolean; files: readonly FileResult[]; held: number }

/** Sandboxes with the records of their passes, as the feature has them, for one process. */
export const openSandboxes = (
  root: string,
  {
    run,
    log,
    directory = root,
    isNoted = () => true,
    lockWaitMs = 30_000,
    freeSpace,
    state = createStateFolder(root),
  }: {
    run: RunProcess
    log: Pick<Log, "debug" | "warn">
    directory?: string
    isNoted?: () => boolean
    /** Long by default, since git is slow on a busy machine. */
    lockWaitMs?: number
    freeSpace?: FreeSpace | undefined
    state?: StateFolder
  },
) => {
  const store = createPassStore({ state, log })
  const audit = { append: async () => true, prune: async () => {} }
  const passes = createPasses({ store, audit, now: () => new Date() })
  const owners = createPassOwners(state, { waitMs: lockWaitMs })
  const recorded: Pick<typeof passes, "appliedPaths" | "recordApplied"> = {
    appliedPaths: passes.appliedPaths,
    recordApplied: async (...applied) => {
      if (isNoted()) await passes.recordApplied(...applied)
    },
  }
  const deps = { state, directory, run, owners, passes: recorded, log, lockWaitMs, ...(freeSpace ? { freeSpace } : {}) }
  const sandboxes = createSandboxes(deps)
  const making: Promise<unknown>[] = []
  const claimed = new Set<string>()
  const undecidedOf = async (id: string): Promise<readonly string[]> => {
    const record = await store.read(id)
    return record && "undecided" in record.state ? record.state.undecided : []
  }
  const apply = async (name: string, { paths, allOrNothing = true }: ApplyOptions = {}): Promise<Applied | Refusal> => {
    const id = idOf(name)
    const wanted = paths ?? (await undecidedOf(id))
    const applied = await sandboxes.apply(id, wanted, { allOrNothing, by: "originator" })
    if (applied.kind === "refused") return applied
    const { files } = applied
    const complete = files.length === wanted.length && files.every(isApplied)
    return { kind: "applied", complete, files, held: (await undecidedOf(id)).length }
  }
  const collect = async (name: string, toolPaths?: ReadonlySet<string>): Promise<Changes | Refusal> => {
    const id = idOf(name)
    const changes = await sandboxes.collect(id, toolPaths)
    const record = await store.read(id)
    if (changes.kind === "changes" && record && isOpen(record.state)) {
      await passes.transition(id, { type: "returned", paths: changes.modifications.map(({ path }) => path) })
    }
    await owners.release(id)
    return changes
  }
  const record = async (name: string): Promise<void> => {
    const id = idOf(name)
    await owners.claim(id)
    claimed.add(id)
    const metadata = passMetadata({ root_session_id: `ses_${name}` })
    await store.create(passRecord({ request: passRequest({ pass_over_id: id, metadata }) }))
  }
  return {
    apply,
    collect,
    /** Waits for the sandboxes that are being made, and gives up its passes. */
    end: async (): Promise<void> => {
      await Promise.allSettled(making)
      for (const id of claimed) await owners.release(id)
    },
    create: async (
      name: string,
      options: Omit<SandboxOptions, "parent"> & { parent?: string },
    ): Promise<Sandbox | Refusal> => {
      const id = idOf(name)
      if (isPassID(id)) await record(name)
      const { canModify, parent } = options
      const made = await sandboxes.create(id, { canModify, parent: parent && idOf(parent) })
      if (made.kind === "created") making.push(made.ready)
      return made
    },
    ready: (name: string) => sandboxes.ready(idOf(name)),
    reset: (name: string, options: SandboxOptions) => sandboxes.reset(idOf(name), options),
    /** Stores the changes and applies what does not conflict, as `auto_apply` does. */
    autoApply: async (name: string): Promise<Applied | Refusal> => {
      const collected = await collect(name)
      return collected.kind === "refused" ? collected : apply(name, { allOrNothing: false })
    },
    reject: async (name: string, paths?: readonly string[]) => {
      const id = idOf(name)
      const wanted = paths ?? (await undecidedOf(id))
      const rejected = await passes.transition(id, { type: "rejected", paths: wanted })
      return {
        kind: rejected.kind === "moved" ? "rejected" : rejected.kind,
        paths: wanted,
        held: (await undecidedOf(id)).length,
      }
    },
    pending: () => listPending(state, { store, owners }),
    sandboxes,
  }
}

export type TestSandboxes = ReturnType<typeof openSandboxes>
