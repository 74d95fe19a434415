/** Questions and answers about the files of passes. */
import type { FileModification } from "../contract.ts"
import type { FileResult } from "./apply.ts"
import type { Refusal } from "./repository.ts"
import type { LeftOut } from "./snapshot.ts"

export type BeginOptions = { readonly canModify: boolean; readonly parent?: string }

export type Begun = {
  readonly kind: "begun"
  /** Place of the child's tools: its sandbox, or OpenCode's directory for a pass without the right to change files. */
  readonly directory: string
  /**
   * Absolute path of the top folder that tool calls are moved to: the pass's own sandbox; for a pass without the right to change
   * files its parent's, or undefined without one.
   */
  readonly copy: string | undefined
  /** Submodules, nested repositories, sockets and the like, which are not in the sandbox. */
  readonly leftOut: readonly LeftOut[]
  /** Resolves when the sandbox is there; with a refusal, and nothing left of it, when it cannot be made. Never rejects. */
  readonly made: Promise<Refusal | undefined>
}

export type Changes = {
  readonly kind: "changes"
  readonly modifications: readonly FileModification[]
  /** Files of the child that no pass can carry. The sandbox stays if it has the only version of them. */
  readonly leftOut: readonly LeftOut[]
}

export type Applied = {
  readonly kind: "applied"
  /** Every requested file is in the project now. */
  readonly complete: boolean
  readonly files: readonly FileResult[]
  /** Files of the pass that are still held, neither applied nor rejected. */
  readonly held: number
}

export type Rejected = {
  readonly kind: "rejected"
  readonly paths: readonly string[]
  /** Requested files that cannot be rejected any more: they are in the project. */
  readonly applied: readonly string[]
  readonly held: number
}

export type ApplyOptions = {
  /** `path` values of the files' modifications; every held file when absent. */
  readonly paths?: readonly string[]
  /** Merges a file that changed meanwhile, if that gives no conflict (default false). */
  readonly merge?: boolean
  /** With one conflict no file is applied (default true). */
  readonly allOrNothing?: boolean
}

export type PendingPass = {
  readonly passID: string
  /**
   * `working`: the child has its sandbox. `held`: its changes are stored and wait to be applied or rejected. `applying`: files are
   * being written; after a crash `restore` undoes it. `damaged`: it cannot be read, for the reason given.
   */
  readonly state: "working" | "held" | "applying" | "damaged"
  /** Start of the pass, ISO 8601. */
  readonly since: string
  /** True while a running process works on it; only that process may restore it then. */
  readonly isOwned: boolean
  readonly copy: string | undefined
  readonly reason?: string
}

export type Restored = {
  readonly kind: "restored"
  /** The steps done, one sentence each. */
  readonly did: readonly string[]
  /** Files that were changed during the apply and were left alone. */
  readonly leftAlone: readonly LeftOut[]
  readonly held: number
}
