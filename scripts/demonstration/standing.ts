import { descriptionParts } from "./ledger-view.ts"
import { CONSTRAINT } from "./slug-project.ts"

/** What a session has left in the ledger that ended in the middle of its work. */
export type LeftBehind = {
  sessionID: string
  description: string
  logs: readonly { message: string }[]
}

/** The parts of a new session's first request that say where the work stood, by name. */
export const STANDING = {
  "last handoff": "The last handoff",
  "first brief": "What the user asked that session for, word for word",
  log: "Last lines of the log",
  git: "Where the work stood",
} as const

/** The lines below a heading of a request; none where it is missing. */
export const linesBelow = (conversation: string, heading: string): string[] => {
  const [, ...lines] =
    conversation
      .split("\n## ")
      .find((part) => part.startsWith(`${heading}\n`))
      ?.split("\n") ?? []
  return lines.filter((line) => line !== "")
}

/** Which of these parts a request does not tell as they were left behind. */
export const untoldIn = (conversation: string, { sessionID, description, logs }: LeftBehind): string[] => {
  const { handoff = "" } = descriptionParts(description)
  const [, text = "no handoff"] = handoff.split("\n").filter((line) => line !== "")
  const below = (part: keyof typeof STANDING): string[] => linesBelow(conversation, STANDING[part])
  const [written = "", ...told] = below("last handoff")
  const holds: Record<keyof typeof STANDING, boolean> = {
    "last handoff":
      new RegExp(`^Written [\\d-]+ [\\d:]+ UTC by session ${sessionID}\\b`).test(written) && told.includes(text),
    "first brief": below("first brief").includes(CONSTRAINT),
    log: logs.slice(-2).every(({ message }) => below("log").some((line) => line.endsWith(`UTC: ${message}`))),
    // A machine without git has nothing to tell.
    git: !handoff.includes("\n- Git: ") || /, \d+ commits? since$/.test(below("git").at(-1) ?? ""),
  }
  return Object.entries(holds).flatMap(([part, isTold]) => (isTold ? [] : [part]))
}
