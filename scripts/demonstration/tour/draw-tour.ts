import { execFileSync } from "node:child_process"

import { tmpdir } from "node:os"
import { join } from "node:path"
import { stripVTControlCharacters } from "node:util"
import { NEWEST } from "../../../test/support/opencode-binary.ts"
import { renderScreens } from "../screen-picture.ts"
import { renderTerminalPicture } from "../terminal-picture.ts"
import { writePicture } from "../write-picture.ts"
import { TERMINAL } from "./conversation.ts"
import type { CommandSeen } from "./place.ts"
import { takeTour } from "./walk.ts"

/** draw-tour.ts FOLDER: the pictures of docs/tour.md, from one walk. The browser runs on Node, which its pipes need. */
const [folder] = process.argv.slice(2)
if (!folder) throw new Error("expected FOLDER; start it with ./scripts/picture tour")

const photographer = join(import.meta.dirname, "photograph-agent.mjs")
const seen = await takeTour({
  binary: NEWEST,
  inTui: true,
  hasTerminal: true,
  browse: async (url) => execFileSync("node", [photographer, url, join(folder, "tour-page")], { encoding: "utf8" }),
})

/** Ids and reasons that run over the edge of the picture are left out of it. */
const cutLines = (text: string): string =>
  text
    .split("\n")
    .map((line) => (line.length > TERMINAL.width ? `${line.slice(0, TERMINAL.width - 1)}…` : line))
    .join("\n")

const drawCommands = (name: string, first: CommandSeen, ...others: readonly CommandSeen[]): void => {
  const more = others.map(({ command, output }) => `\n\u001b[32m$\u001b[0m \u001b[1m${command}\u001b[0m\n${output}`)
  writePicture(
    join(folder, name),
    renderTerminalPicture(first.command, cutLines([first.output, ...more].join(""))),
    tmpdir(),
  )
}

/** A screen without the rows below it that show nothing. */
const drawScreen = (name: string, title: string, caption: string, screen: string): void => {
  const rows = screen.split("\n")
  while (stripVTControlCharacters(rows.at(-1) ?? "").trim() === "") rows.pop()
  const size = { columns: TERMINAL.width, rows: rows.length }
  writePicture(join(folder, name), renderScreens(title, [{ caption, screen: rows.join("\n") }], size), tmpdir())
}

const { install, doctor, show, learned, passes, handoffs } = seen.commands
drawCommands("tour-install.svg", install, doctor)
drawScreen(
  "tour-work.svg",
  "OpenCode's TUI: a correction, and a review by another agent",
  "opencode",
  seen.sights.reviewed,
)
drawScreen(
  "tour-tests.svg",
  "OpenCode's TUI: the task is named after three compactions",
  "opencode",
  seen.sights.tested,
)
drawScreen(
  "tour-handoff.svg",
  "OpenCode's TUI: the draft of a handoff in a new session's prompt",
  "opencode",
  seen.sights.draft,
)
drawScreen(
  "tour-observe.svg",
  "A terminal: an agent at work, its task and its newest records",
  ".opencode/baton/bin/baton observe",
  seen.observed.terminal,
)
drawCommands("tour-ledger.svg", show, learned, passes, handoffs)
process.exit()
