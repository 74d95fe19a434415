import type { Hooks, PluginInput } from "@opencode-ai/plugin"
import type { StoredMessage } from "./sessions.ts"

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

/** The hooks of a feature, and those that OpenCode 1 does not have. */
export type FeatureHooks = Hooks & {
  /** @returns the title of a new session; undefined to leave it to OpenCode */
  readonly title?: (sessionID: string) => Promise<string | undefined>
}

/** A feature as OpenCode 1 starts it; `opencode-2/` starts it in the same way. */
export type StartFeature = (host: Host) => Promise<FeatureHooks>

export const can = (host: Pick<Host, "lacks">, ability: Ability): boolean => host.lacks?.has(ability) !== true

/** A request for a summary, and the judgement of the model's answer. */
export type SummaryPlan = {
  readonly prompt: string
  /**
   * @param answer trimmed; empty where the model failed
   * @returns the text that stands in for it; undefined for an answer that is good
   */
  rescue(answer: string): string | undefined
}

/** A session's conversation, as the model sees it before a compaction. */
export type Conversation = {
  readonly messages: readonly StoredMessage[]
  /** The newest summary, or the text that stood in for it; empty for none. */
  readonly summary: string
  /** A person's, as far as is known: no subagent's. */
  readonly isUsers: boolean
}

/** The output of a command's hook. A host that can show an answer without asking the model shows this one. */
export type CommandOutput = Parameters<NonNullable<Hooks["command.execute.before"]>>[1] & { answer?: string }

/** The output of the compacting hook. A host that asks for the summary itself needs more than a prompt. */
export type CompactingOutput = Parameters<NonNullable<Hooks["experimental.session.compacting"]>>[1] & {
  rescue?: SummaryPlan["rescue"]
  /** The plan where there is no prompt. */
  planWithoutTask?: (conversation: Conversation) => Promise<SummaryPlan>
  /** The summary is left to OpenCode, which is given the context alone. */
  isLeftToOpenCode?: boolean
  /** The summariser sees the summary before in the conversation. */
  showsSummary?: boolean
  /** The message that set the task: for a host that does not show messages from before a compaction. */
  taskMessage?: { readonly id: string; readonly text: string } | undefined
}

/** Features that are off on OpenCode 2 so far, by their names for people. */
export const NOT_YET_ON_2 = "handoff, live state, passes"
