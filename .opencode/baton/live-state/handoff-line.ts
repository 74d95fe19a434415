/** A compaction's own title: its number is for people, its ids are for programs. */
const TITLE = /^Handoff (after compaction \d+) \(.*\)$/

/**
 * A handoff in one line: what it is of, and what its text begins with.
 *
 * @param section the handoff section of a description, Markdown, without its marks
 * @returns undefined when there is nothing in it
 */
export const renderHandoffHeading = (section: string): string | undefined => {
  const [title, text] = section
    .split("\n")
    .map((line) => line.replace(/^#+ */, "").trim())
    .filter((line) => line !== "")
  const [, compaction] = TITLE.exec(title ?? "") ?? []
  return compaction === undefined || text === undefined ? title : `${compaction}: ${text}`
}
