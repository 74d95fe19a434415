import { execFileSync } from "node:child_process"
import { scriptedConfig } from "../../test/support/isolated-opencode.ts"
import { NEWEST } from "../../test/support/opencode-binary.ts"
import { startScriptedModel } from "../../test/support/scripted-model.ts"
import { openTestLedger } from "../../test/support/test-ledger.ts"
import { createTestProject, type TestProject } from "../../test/support/test-project.ts"
import { startTui, type TestTerminal } from "../../test/support/tui.ts"
import { FIRST_ANSWER, GOAL, PROJECT_FILES, sceneScript, TASK, WORK_DONE, workerMessage } from "./handoff-scene.ts"
import { renderScreens } from "./screen-picture.ts"
import { shortenFolder, writePicture } from "./write-picture.ts"

/** draw-handoff.ts SVG: the picture of /handoff in OpenCode's own TUI, with a scripted model. */
const [picture] = process.argv.slice(2)
if (!picture) throw new Error("expected SVG; start it with ./scripts/picture handoff")

const SIZE = { columns: 104, rows: 34 }
const SHOWN_FOLDER = "~/my-project"
const TITLE = "OpenCode's TUI: /handoff puts a draft into a new session's prompt, and the new session starts with it"

const commitFiles = (project: TestProject): void => {
  for (const [path, text] of Object.entries(PROJECT_FILES)) project.write(path, text)
  const identity = ["-c", "user.name=Demo", "-c", "user.email=demo@example.invalid"]
  const git = (...args: string[]) => execFileSync("git", ["-C", project.directory, ...identity, ...args])
  git("add", "-A")
  git("commit", "-q", "-m", "A parser for LF")
}

const shoot = async (tui: TestTerminal, taskID: string): Promise<{ draft: string; sent: string }> => {
  const message = workerMessage(taskID)
  tui.type(message)
  await tui.shows(message.split("\n").at(-1) ?? "")
  tui.press("Enter")
  await tui.shows(WORK_DONE)
  await tui.send(`/handoff ${GOAL}`)
  await tui.shows("Handoff Ready")
  await tui.shows("Not committed")
  // The prompt shows the end of a long draft; its beginning tells more.
  tui.press("Home")
  await tui.shows("Continuing work from session")
  await tui.shows("Handoff Ready")
  const draft = tui.screen({ colours: true })
  tui.press("Enter")
  await tui.shows(FIRST_ANSWER)
  await tui.shows(/^(?![\s\S]*esc interrupt)/)
  return { draft, sent: tui.screen({ colours: true }) }
}

const model = await startScriptedModel(sceneScript)
const named = scriptedConfig({ modelURL: model.url })
Object.assign(named.provider.scripted, { name: "model" })
Object.assign(named.provider.scripted.models.model, { name: "Scripted" })
const project = createTestProject({
  binary: NEWEST,
  modelURL: model.url,
  folder: "home/my-project",
  config: named,
  environment: { COLORTERM: "truecolor" },
})
try {
  commitFiles(project)
  const taskID = await openTestLedger(project, NEWEST).addTask(TASK)
  const tui = await startTui(NEWEST, project, { width: SIZE.columns, height: SIZE.rows })
  try {
    const { draft, sent } = await shoot(tui, taskID)
    const frames = [
      {
        caption: `/handoff ${GOAL}: the draft stands in a new session's prompt`,
        screen: shortenFolder(draft, project.directory, SHOWN_FOLDER),
      },
      {
        caption: "Sent: the new session starts with the draft and the files",
        screen: shortenFolder(sent, project.directory, SHOWN_FOLDER),
      },
    ]
    writePicture(picture, renderScreens(TITLE, frames, SIZE), project.home)
  } finally {
    await tui.stop()
  }
} finally {
  await model.close()
  await project.remove()
}
process.exit()
