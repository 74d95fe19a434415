import { execFileSync } from "node:child_process"
import { join } from "node:path"
import { NEWEST } from "../../../test/support/opencode/opencode-binary.ts"
import { type Frame, renderCommands, renderTerminal, writePicture } from "../terminal-picture.ts"
import { type CommandSeen, TERMINAL } from "./place.ts"
import { SAID } from "./story.ts"
import { takeTour } from "./walk.ts"

/** draw-tour.ts FOLDER: draws the pictures of docs/tour.md and docs/handoff.md, from one walk. */
const [folder] = process.argv.slice(2)
if (!folder) throw new Error("expected FOLDER; start it with ./scripts/picture tour")

const photographer = join(import.meta.dirname, "..", "photograph.mjs")
const { commands, sights, observed } = await takeTour({
  binary: NEWEST,
  inTui: true,
  hasTerminal: true,
  browse: async (url) => String(execFileSync("node", [photographer, "tour", url, join(folder, "tour-page")])),
})

/** Cuts ids and reasons that run over the picture's edge. */
const cutLine = (line: string): string =>
  line.length > TERMINAL.width ? `${line.slice(0, TERMINAL.width - 1)}…` : line

const drawCommands = (name: string, ...seen: readonly CommandSeen[]): void => {
  const cut = seen.map(({ command, output }) => {
    const lines = output.trimEnd().split("\n").map(cutLine)
    return { command, output: lines.join("\n") }
  })
  writePicture(join(folder, name), renderCommands(...cut))
}

const draw = (name: string, title: string, ...frames: readonly Frame[]): void =>
  writePicture(join(folder, name), renderTerminal(title, ...frames))

const { install, doctor, show, learned, passes, handoffs } = commands
const { reviewed, tested, draft, begun } = sights
const [caption, tui] = ["opencode", "OpenCode's TUI"]
drawCommands("tour-install.svg", install, doctor)
draw("tour-work.svg", `${tui}: a correction, and a review by another agent`, { caption, screen: reviewed })
draw("tour-tests.svg", `${tui}: the task is named after three compactions`, { caption, screen: tested })
draw("tour-handoff.svg", `${tui}: the draft of a handoff in a new session's prompt`, { caption, screen: draft })
draw(
  "handoff.svg",
  `${tui}: /handoff puts a draft into a new session's prompt, and the new session starts with it`,
  { caption: `/handoff ${SAID.goal}: the draft stands in a new session's prompt`, screen: draft },
  { caption: "Sent: the new session starts with the draft and the files", screen: begun },
)
draw("tour-observe.svg", "A terminal: an agent at work, its task and its newest records", {
  caption: ".opencode/baton/bin/baton observe",
  screen: observed.terminal,
})
drawCommands("tour-ledger.svg", show, learned, passes, handoffs)
process.exit()
