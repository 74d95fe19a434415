import type { infer as Infer } from "zod"
import type { artifactSchemas } from "../contract.ts"

/** One file that a pass changed, as in docs/pass-over.schema.json; paths are relative to the worktree's top folder. */
export type FileModification = Extract<
  Infer<ReturnType<typeof artifactSchemas>["artifact"]>,
  { type: "file_modification" }
>

/** Something that a pass cannot carry, reported rather than silently dropped. */
export type LeftOut = { readonly path: string; readonly reason: string }

/** `code` is for programs; `reason` and `fix` are sentences for a model or the user. */
export type Refusal = {
  readonly kind: "refused"
  readonly code: "no-git" | "no-repository" | "unknown-pass" | "wrong-state" | "busy" | "damaged" | "failed"
  readonly reason: string
  readonly fix: string
}

export type BeginOptions = { readonly canModify: boolean; readonly parent?: string }

export type Begun = {
  readonly kind: "begun"
  /** Place of the child's tools: its own copy, or OpenCode's directory for a pass without the right to change files. */
  readonly directory: string
  /**
   * Absolute path of the top folder that tool calls are redirected to: the pass's own copy; for a pass without the right to
   * change files its parent's copy, or undefined without one.
   */
  readonly copy: string | undefined
  /** Submodules, nested repositories, sockets and the like, which are not in the copy. */
  readonly leftOut: readonly LeftOut[]
  /** Resolves when the copy is made; with a refusal, and nothing left of it, when it cannot be. Never rejects. */
  readonly made: Promise<Refusal | undefined>
}

export type Changes = {
  readonly kind: "changes"
  readonly modifications: readonly FileModification[]
  /** Files of the child that no pass can carry. The copy stays if it has the only version of them. */
  readonly leftOut: readonly LeftOut[]
}

/** The outcome for one file. A conflict left it unchanged. */
export type FileResult = {
  readonly path: string
  readonly outcome: "applied" | "merged" | "already-applied" | "conflict" | "not-tried"
  /** For a conflict: what was expected and found, and whether `merge` would succeed. */
  readonly reason?: string
  readonly mergeable?: boolean
}

export type Applied = {
  readonly kind: "applied"
  /** Every requested file is in the worktree now. */
  readonly complete: boolean
  readonly files: readonly FileResult[]
  /** Files of the pass that are still held, neither applied nor rejected. */
  readonly held: number
}

export type Rejected = {
  readonly kind: "rejected"
  readonly paths: readonly string[]
  /** Requested files that cannot be rejected any more: they are in the worktree. */
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
   * `working`: the child has its copy. `held`: its changes are stored and wait to be applied or rejected. `applying`: files are
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

/**
 * The files of passes. A pass that may change files works in its own copy of the worktree, so the worktree stays unchanged until
 * `apply`, with any number of passes and even if the process dies. Describable failures are returned as a `Refusal`, not thrown.
 */
export type PassWorktree = {
  /**
   * Begins the copy: all files on the disk, also uncommitted and untracked ones, without ignored ones. It is made during the
   * child's first request.
   *
   * @param options `parent`: the pass that the originator itself works in. The copy is then made of the parent's copy, and
   * `apply` writes there, so that a chain of passes hands its work back step by step.
   */
  begin(passID: string, options: BeginOptions): Promise<Begun | Refusal>
  /** Called when the child's request is about to be sent: its copy is made while the model thinks, after 1 s at the latest. */
  requestPrepared(passID: string): void
  /** Makes the copy now, because its originator continues and may change files. */
  complete(passID: string): Promise<void>
  /** Lets in a tool of the child, or of a session below it; resolves when the copy is made. @returns the error of making it */
  enter(passID: string): Promise<Refusal | undefined>
  /**
   * Returns the differences from what the child began with: from its copy while the child works, later from the held changes.
   *
   * @param toolPaths files that the child's own tools wrote, for `by`; all others are changed by `shell`
   */
  changes(passID: string, toolPaths?: ReadonlySet<string>): Promise<Changes | Refusal>
  /**
   * Stores the changes of an ended child and removes its copy, if it was used at all. Does not touch the worktree. May be
   * repeated: after a refusal the copy stays, and its lock is released.
   */
  withhold(passID: string, toolPaths?: ReadonlySet<string>): Promise<Changes | Refusal>
  /** Calls `withhold`, then applies or merges what it can file by file (`auto_apply`); conflicts stay held. */
  keep(passID: string, toolPaths?: ReadonlySet<string>): Promise<Applied | Refusal>
  apply(passID: string, options?: ApplyOptions): Promise<Applied | Refusal>
  /** Rejects held files (all when `paths` is absent); they stay readable through `changes`. */
  reject(passID: string, paths?: readonly string[]): Promise<Rejected | Refusal>
  /** Passes that are not settled, oldest first. */
  pending(): Promise<readonly PendingPass[]>
  /** Returns the path of a pass's copy, whether it exists or not. */
  copyOf(passID: string): string
  /** After a crash: stores the changes in a dead child's copy, and finishes or undoes an interrupted `apply`. Loses nothing. */
  restore(passID: string): Promise<Restored | Refusal>
  /** Deletes finished copies that earlier processes left. Never rejects. */
  sweep(): Promise<void>
}
