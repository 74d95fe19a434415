import type { Hooks, PluginInput } from "@opencode-ai/plugin"

/** An ability that not every line of OpenCode offers to Baton. */
export type Ability =
  /** A new session's prompt can be filled in for the user to review. */
  | "drafts"
  /** Events tell what each session is doing. */
  | "turn states"
  /** Sessions can be created as children, with an agent and tools of their own. */
  | "child sessions"

/**
 * OpenCode, as features speak to it. The shape is OpenCode 1's own, whose input fits as it is; `opencode-2/` makes the same of
 * OpenCode 2's.
 */
export type Host = PluginInput & {
  readonly lacks?: ReadonlySet<Ability>
  /** A feature may end and start again while others go on; else they end together. */
  readonly endsOneByOne?: boolean
}

/** A feature as OpenCode 1 starts it; `opencode-2/` starts it in the same way. */
export type StartFeature = (host: Host) => Promise<Hooks>

export const can = (host: Pick<Host, "lacks">, ability: Ability): boolean => host.lacks?.has(ability) !== true

/** Stands in for a summary that the model did not write. */
export type Rescue = {
  /** Judges the model's answer. @param answer trimmed */
  isUsable(answer: string): boolean
  readonly text: string
}

/** The output of a command's hook. A host that can show an answer without asking the model shows this one. */
export type CommandOutput = Parameters<NonNullable<Hooks["command.execute.before"]>>[1] & { answer?: string }

/** The output of the compacting hook. A host that asks for the summary itself takes the rescue where the answer is of no use. */
export type CompactingOutput = Parameters<NonNullable<Hooks["experimental.session.compacting"]>>[1] & {
  rescue?: Rescue
}

/** Features that are off on OpenCode 2 so far, by their names for people. */
export const NOT_YET_ON_2 = "handoff, live state, passes"
