import type { infer as Infer } from "zod"
import type { artifactSchemas } from "../contract.ts"

/** One file that a pass changed, as docs/pass-over.schema.json has it; paths are relative to the worktree's top folder. */
export type FileModification = Extract<
  Infer<ReturnType<typeof artifactSchemas>["artifact"]>,
  { type: "file_modification" }
>

/** Something that a pass cannot carry, named rather than dropped without a word. */
export type LeftOut = { readonly path: string; readonly reason: string }

/** `code` is for programs; `reason` and `fix` are sentences for a model or a person. */
export type Refusal = {
  readonly kind: "refused"
  readonly code: "no-git" | "no-repository" | "unknown-pass" | "wrong-state" | "busy" | "damaged" | "failed"
  readonly reason: string
  readonly fix: string
}

export type BeginOptions = { readonly canModify: boolean; readonly parent?: string }

export type Begun = {
  readonly kind: "begun"
  /** Where the child's tools work: its own copy, or the directory of OpenCode for a pass that may change nothing. */
  readonly directory: string
  /**
   * Absolute path of the top folder that tool calls are to be moved to: the pass's own copy; of a pass that may change
   * nothing its parent's, and undefined where it has none.
   */
  readonly copy: string | undefined
  /** Submodules, nested repositories, sockets and the like, which are not in the copy. */
  readonly leftOut: readonly LeftOut[]
  /** Ends when the copy is made; with a refusal when it cannot be, and nothing of it stays then. Never rejects. */
  readonly made: Promise<Refusal | undefined>
}

export type Changes = {
  readonly kind: "changes"
  readonly modifications: readonly FileModification[]
  /** What the child made and no pass can carry. The copy stays when it has the only one. */
  readonly leftOut: readonly LeftOut[]
}

/** What became of one file. A conflict left the file as it was. */
export type FileResult = {
  readonly path: string
  readonly outcome: "applied" | "merged" | "already-applied" | "conflict" | "not-tried"
  /** For a conflict: what was expected and found, and whether `merge` would go in without a conflict. */
  readonly reason?: string
  readonly mergeable?: boolean
}

export type Applied = {
  readonly kind: "applied"
  /** Whether every file asked for is in the worktree now. */
  readonly complete: boolean
  readonly files: readonly FileResult[]
  /** Files of the pass that are still held, neither applied nor rejected. */
  readonly held: number
}

export type Rejected = {
  readonly kind: "rejected"
  readonly paths: readonly string[]
  /** Files asked for that cannot be given up any more: they are in the worktree. */
  readonly applied: readonly string[]
  readonly held: number
}

export type ApplyOptions = {
  /** Only these files, as `path` of their modification says; every held one when absent. */
  readonly paths?: readonly string[]
  /** Whether a file that changed meanwhile is merged where that gives no conflict (default false). */
  readonly merge?: boolean
  /** Whether one conflict keeps all of them from being applied (default true). */
  readonly allOrNothing?: boolean
}

export type PendingPass = {
  readonly passID: string
  /**
   * `working`: the child has its copy. `held`: its changes are stored and wait to be applied or rejected. `applying`: files
   * are being written; found after a crash it is undone by `restore`. `damaged`: it cannot be read, for the reason given.
   */
  readonly state: "working" | "held" | "applying" | "damaged"
  /** When the pass began, ISO 8601. */
  readonly since: string
  /** Whether a process that is still there works on it: then it is nobody else's to restore. */
  readonly isOwned: boolean
  readonly copy: string | undefined
  readonly reason?: string
}

export type Restored = {
  readonly kind: "restored"
  /** What was done, one sentence each. */
  readonly did: readonly string[]
  /** Files that somebody changed in the middle and that were left alone. */
  readonly leftAlone: readonly LeftOut[]
  readonly held: number
}

/**
 * The files of passes. A pass that may change files works in a copy of the worktree of its own, so that until `apply` the
 * worktree is what it was whatever the child does, however many passes there are and whenever the process dies.
 * Nothing here throws for a state that can be described; what it cannot do is a `Refusal`.
 */
export type PassWorktree = {
  /**
   * Begins the copy: what is on the disk, uncommitted and untracked files too, ignored ones not. It is made while the child is
   * asked for its first step.
   *
   * @param options `parent`: the pass that the originator itself works in. The copy is then made of the parent's copy, and
   *   `apply` writes there, so that a chain of passes hands its work on step by step.
   */
  begin(passID: string, options: BeginOptions): Promise<Begun | Refusal>
  /** The child's request will be on its way in a moment: its copy is made while the model thinks, 1 s later at the latest. */
  requestPrepared(passID: string): void
  /** Makes the copy now: its originator goes on, and may change files. */
  complete(passID: string): Promise<void>
  /** Lets a tool of the child, or of a session below it, work: ends when the copy is there. @returns why it cannot be */
  enter(passID: string): Promise<Refusal | undefined>
  /**
   * What differs from what the child began with. While the child works this looks at its copy; afterwards it is what is held.
   *
   * @param toolPaths files that the child's own tools wrote, as `by` tells; all others are changed by `shell`
   */
  changes(passID: string, toolPaths?: ReadonlySet<string>): Promise<Changes | Refusal>
  /**
   * The child has ended: stores its changes and removes its copy, where it was let in at all. The worktree is not touched. May be
   * called again: of a refusal the copy is left, and nobody is kept from storing it.
   */
  withhold(passID: string, toolPaths?: ReadonlySet<string>): Promise<Changes | Refusal>
  /** `withhold`, and then what can be applied or merged file by file is (`auto_apply`); conflicts stay held. */
  keep(passID: string, toolPaths?: ReadonlySet<string>): Promise<Applied | Refusal>
  apply(passID: string, options?: ApplyOptions): Promise<Applied | Refusal>
  /** Gives up held files (every one when `paths` is absent); they stay readable through `changes`. */
  reject(passID: string, paths?: readonly string[]): Promise<Rejected | Refusal>
  /** Passes that are not settled, oldest first. */
  pending(): Promise<readonly PendingPass[]>
  /** Where the copy of a pass is, or would be. */
  copyOf(passID: string): string
  /** After a crash: stores what a dead child's copy holds, and finishes or undoes a half-done `apply`. Loses nothing. */
  restore(passID: string): Promise<Restored | Refusal>
  /** Deletes what earlier processes had no time to delete of copies that are over. Never rejects. */
  sweep(): Promise<void>
}
