import { execFileSync } from "node:child_process"
import { join } from "node:path"
import { NEWEST } from "../../../test/support/opencode/opencode-binary.ts"
import { cut } from "../agent-run.ts"
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

/** Ids and reasons that run over the picture's edge are cut. */
const drawCommands = (name: string, ...seen: readonly CommandSeen[]): void => {
  const commands = seen.map(({ command, output }) => {
    const lines = output.trimEnd().split("\n")
    return { command, output: lines.map((line) => cut(line, TERMINAL.width)).join("\n") }
  })
  writePicture(join(folder, name), renderCommands(...commands))
}

const draw = (name: string, title: string, ...frames: readonly Frame[]): void =>
  writePicture(join(folder, name), renderTerminal(title, ...frames))

const { install, doctor, show, learned, passes, handoffs } = commands
const { reviewed, tested, draft, begun } = sights
const tui = (screen: string, caption = "opencode"): Frame => ({ caption, screen })
drawCommands("tour-install.svg", install, doctor)
draw("tour-work.svg", "OpenCode's TUI: a correction, and a review by another agent", tui(reviewed))
draw("tour-tests.svg", "OpenCode's TUI: the task is named after three compactions", tui(tested))
draw("tour-handoff.svg", "OpenCode's TUI: the draft of a handoff in a new session's prompt", tui(draft))
draw(
  "handoff.svg",
  "OpenCode's TUI: /handoff puts a draft into a new session's prompt, and the new session starts with it",
  tui(draft, `/handoff ${SAID.goal}: the draft stands in a new session's prompt`),
  tui(begun, "Sent: the new session starts with the draft and the files"),
)
const observer = tui(observed.terminal, ".opencode/baton/bin/baton observe")
draw("tour-observe.svg", "A terminal: an agent at work, its task and its newest records", observer)
drawCommands("tour-ledger.svg", show, learned, passes, handoffs)
process.exit()
