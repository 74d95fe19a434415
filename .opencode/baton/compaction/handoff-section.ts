import type { CompletedCompaction } from "../host/messages.ts"
import { type Facts, renderFacts } from "../task/activity.ts"

/** Which compaction a handoff section is of, as its title says. */
export type HandoffTitle = {
  /** The session's compactions so far, this one included. */
  readonly number: number
  readonly sessionID: string
  /** Id of the message that holds the summary. */
  readonly summaryID: string
  /** When it was written: ISO 8601, UTC. */
  readonly at: string
}

const TITLE = /^# Handoff after compaction (\d+) \(session (\w+), summary (\w+), ([0-9T:.-]+Z)\)/

/** The compaction that a section is of; undefined for text that does not begin with such a title. */
export const parseHandoffTitle = (section: string): HandoffTitle | undefined => {
  const [, number, sessionID, summaryID, at] = TITLE.exec(section) ?? []
  if (number === undefined || sessionID === undefined || summaryID === undefined || at === undefined) return undefined
  return { number: Number(number), sessionID, summaryID, at }
}

/**
 * What `prog show` shows of a compaction.
 *
 * @param earlier the newest handoff that has a text, for a summary that has none
 */
export const renderHandoffSection = (
  { number, sessionID }: Pick<HandoffTitle, "number" | "sessionID">,
  at: Date,
  { summaryID, summary }: CompletedCompaction,
  facts: Facts,
  earlier: string | undefined,
): string => {
  const title = `# Handoff after compaction ${number} (session ${sessionID}, summary ${summaryID}, ${at.toISOString()})`
  if (summary !== "") return [title, summary, renderFacts(facts)].join("\n\n")
  const stands = earlier ? `The handoff before it:\n\n${earlier}` : "There is no earlier handoff."
  return [title, "The summary of this compaction was empty.", renderFacts(facts), stands].join("\n\n")
}
