import { execFileSync } from "node:child_process"
import { join } from "node:path"
import { NEWEST } from "../../test/support/opencode/opencode-binary.ts"
import { cut } from "./agent-run.ts"
import { atPrompt, renderTerminal, writePicture } from "./terminal-picture.ts"
import { type CommandSeen, TERMINAL } from "./tour/place.ts"
import { SAID } from "./tour/story.ts"
import { takeTour } from "./tour/walk.ts"

/** draw-tour.ts FOLDER: draws the pictures of docs/tour.md and docs/handoff.md, from one walk. */
const [folder] = process.argv.slice(2)
if (!folder) throw new Error("expected FOLDER; start it with ./scripts/picture tour")

const photographer = join(import.meta.dirname, "photograph.mjs")
const { commands, sights, observed } = await takeTour({
  binary: NEWEST,
  inTui: true,
  browse: async (url) => String(execFileSync("node", [photographer, "tour", url, join(folder, "tour-page")])),
})

const draw = (name: string, title: string, ...screens: readonly string[]): void =>
  writePicture(join(folder, name), renderTerminal(`A terminal: ${title}`, ...screens))

/** Ids and reasons that run over the picture's edge are cut. */
const seen = ({ command, output }: CommandSeen): string => {
  const lines = output.trimEnd().split("\n")
  return atPrompt(command, lines.map((line) => cut(line, TERMINAL.width)).join("\n"))
}
const under = (caption: string, screen: string): string => `\u001b[2m${caption}\u001b[0m\n\n${screen}`

const { install, doctor, show, learned, passes, handoffs } = commands
const { reviewed, tested, draft, begun } = sights
draw("tour-install.svg", "the installation, and what doctor says", seen(install), seen(doctor))
draw("tour-work.svg", "OpenCode's TUI with a correction, and a review by another agent", reviewed)
draw("tour-tests.svg", "OpenCode's TUI names the task after three compactions", tested)
draw("tour-handoff.svg", "OpenCode's TUI with the draft of a handoff in a new session's prompt", draft)
draw(
  "handoff.svg",
  "OpenCode's TUI, where /handoff puts a draft into a new session's prompt, and the new session starts with it",
  under(`/handoff ${SAID.goal}: the draft stands in a new session's prompt`, draft),
  under("Sent: the new session starts with the draft and the files", begun),
)
const observer = atPrompt(".opencode/baton/bin/baton observe", observed.terminal)
draw("tour-observe.svg", "an agent at work, its task and its newest records", observer)
draw("tour-ledger.svg", "what is in the ledger and about it", ...[show, learned, passes, handoffs].map(seen))
process.exit()
