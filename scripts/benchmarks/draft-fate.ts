export type DraftFate = "arrived" | "lost" | "doubled" | "misplaced"

export type SentDraft = {
  /** What had been typed into the prompt before the draft came. */
  typed: string
  /** The draft as it was made. */
  draft: string
  /** Words that stand in this draft once and in no other. */
  mark: string
}

/**
 * What became of a draft, by what the model received when the prompt was sent.
 *
 * @param conversation of the model's request; undefined when nothing came
 */
export const judgeDraft = (conversation: string | undefined, { typed, draft, mark }: SentDraft): DraftFate => {
  const marks = (conversation ?? "").split(mark).length - 1
  if (conversation === undefined || marks === 0) return "lost"
  if (marks > 1) return "doubled"
  return conversation.startsWith(`[user] ${typed}${draft.trimEnd()}`) ? "arrived" : "misplaced"
}
