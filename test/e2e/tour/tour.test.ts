import { readFileSync } from "node:fs"
import { join } from "node:path"
import { stripVTControlCharacters } from "node:util"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import {
  BRIEF,
  CORRECTION,
  FINAL_PARSER,
  FINDING,
  POLICY,
  RELEASE_NOTE,
  SAID,
  TASK,
} from "../../../scripts/demonstration/tour/story.ts"
import { type TourSeen, takeTour } from "../../../scripts/demonstration/tour/walk.ts"
import { promised } from "../../requirements.ts"
import { deadline, NEWEST, NEWEST_OR_ALL, REPOSITORY } from "../../support/index.ts"
import { withoutIds } from "../../support/ledger/quoted-commands.ts"
import { findChromium, startBrowser, type TestBrowser } from "../../support/opencode/browser.ts"
import { isTmuxHere } from "../../support/opencode/tui.ts"
import { expectInOrder } from "../sessions.ts"

/** A command in a page, after `$ `, and its quoted lines of output. */
const QUOTED = /^\$ (.*)\n((?:(?!\$ |```).*\n)*)/gm

/** Half a minute on an idle machine; a walk has many steps, and each is slower on a busy machine. */
const TOUR_DEADLINE_MS = deadline(600_000)
const NOTHING_TO_MEND = /\n0 broken, 0 warnings, \d+ ok\n$/

/** Folders of OpenCode, Bun and OpenTUI, the ledger, the account's key for Baton's state, and the sockets of the test's terminals. */
const EXPECTED_AT_HOME =
  /^(?:\.config|\.local|\.local\/bin(?:\/opencode)?|\.local\/share|\.local\/state|\.cache|(?:\.config|\.local\/share|\.local\/state|\.cache)\/(?:opencode|opentui|bun)(?:\/.*)?|\.local\/state\/baton(?:\/(?:state\.key|projects(?:\/[0-9a-f]+\.json)?))?|\.prog(?:\/prog\.db(?:-wal|-shm)?)?|tmux-\d+\.sock)$/
/** OpenCode's folder, and the libraries that it unpacks at each start. */
const EXPECTED_IN_TMPDIR = /^(?:opencode|\.[0-9a-f-]+\.so)$/

// scripts/test warns about tests left out without tmux or Chromium.
const [hasTmux, hasChromium] = [isTmuxHere(), findChromium() !== undefined]

let browser: TestBrowser | undefined
beforeAll(async () => {
  if (hasChromium) browser = await startBrowser()
})
afterAll(() => browser?.close())

const readPage = async (opened: TestBrowser, url: string): Promise<string> => {
  const { page, errors } = await opened.open(url)
  await page.locator('.row[data-doing="busy"]').waitFor()
  await page.getByText("Handoff to").waitFor()
  expect(errors).toEqual([])
  return (await page.locator("main").textContent()) ?? ""
}

describe.each(NEWEST_OR_ALL)("a tour with OpenCode $version", (binary) => {
  // 1.2.15's TUI drops keys typed by tmux.
  const inTui = hasTmux && binary === NEWEST
  let seen: TourSeen
  /** Conversations of the agent's turn requests that hold all these parts. */
  const turns = (...parts: string[]) =>
    seen.requests
      .filter(({ kind, conversation }) => kind === "turn" && parts.every((part) => conversation.includes(part)))
      .map(({ conversation }) => conversation)
  const turnsAfterCompactions = () =>
    seen.requests.flatMap(({ kind, conversation }, index) =>
      kind !== "compaction" && seen.requests[index - 1]?.kind === "compaction" ? [conversation] : [],
    )

  beforeAll(async () => {
    const opened = browser
    const browse = opened ? { browse: (url: string) => readPage(opened, url) } : {}
    seen = await takeTour({ binary, inTui, ...browse })
  }, TOUR_DEADLINE_MS)

  test(promised("tour.A1", "the installation adds files, changes none, and says what comes next"), () => {
    const { exitCode, output } = seen.commands.install
    expect(exitCode).toBe(0)
    expect(output).toMatch(/^Files: [1-9]\d+ added, 0 updated, 0 removed, 0 kept/m)
    expect(output).toContain("Next:\n  ~/baton/scripts/doctor ~/my-project\n  cd ~/my-project && opencode\n")
    expect(seen.trees.installed).toMatchObject(seen.trees.before)
  })

  test(promised("tour.A2", "doctor finds nothing to mend, before the first session and after all the work"), () => {
    const { doctor, health } = seen.commands
    for (const { exitCode, output } of [doctor, health]) {
      expect(output).toMatch(NOTHING_TO_MEND)
      expect(exitCode).toBe(0)
    }
  })

  test(promised("tour.A3", "a correction stands in a later session's first request, and can be looked up"), () => {
    const [first] = turns(SAID.other)
    expect(first).toContain("<baton-learned>")
    expect(first).toContain(CORRECTION)
    expect(first).not.toContain(seen.taskID)
    expect(seen.commands.learned.output).toContain(CORRECTION)
  })

  test(promised("tour.A4", "a review comes back, and of a pass only what is taken"), () => {
    const [answered] = turns("audit → completed, decision: changes_requested")
    expect(answered).toContain(`error src/parser.js:5: ${FINDING}`)
    expect(answered).toContain("1 file read, 1 sent along")
    expect(seen.work.parser).toBe(FINAL_PARSER)
    expect(Object.keys(seen.trees.after)).not.toContain("NOTES.md")
    expect(seen.commands.passes.output).toMatch(/build → audit {2}returned .*\n.*build → general {2}applied /)
    expect(seen.commands.show.output).toContain("Pass build → audit: completed, changes_requested")
  })

  test(promised("tour.A5", "three compactions are in the task's log, and the turn after each knows the task"), () => {
    const logged = [...seen.commands.show.output.matchAll(/\] Compaction (\d): (.*) \(session ses_\w+\)$/gm)]
    expect(logged).toHaveLength(seen.requests.filter(({ kind }) => kind === "compaction").length)
    const said = logged.map(([, , summary = ""]) => summary.replace(/(?<=^the summary was empty); known.*/, ""))
    // 1.14 compacts twice where the others compact once.
    const first = said.filter((summary, at) => summary !== said[at - 1]).slice(0, 3)
    const tests = "The parser splits at CRLF. Tests were run."
    expect(first).toEqual([tests, "Some work was done.", "the summary was empty"])
    const numbers = logged.map(([, number]) => Number(number))
    const inFirstSession = numbers.slice(0, numbers.lastIndexOf(1))
    expect(inFirstSession).toEqual(inFirstSession.map((_, at) => at + 1))
    const after = turnsAfterCompactions().slice(0, 3)
    expect(after).toHaveLength(3)
    for (const conversation of after)
      for (const part of [`Task: ${seen.taskID}`, TASK.definitionOfDone, BRIEF]) expect(conversation).toContain(part)
    // The agent's claim about the tests is true.
    expect(seen.requests.some(({ conversation }) => /[#ℹ] pass 4\b/.test(conversation))).toBe(true)
    expect(seen.sights.tested).toContain(`That is ${seen.taskID}.`)
  })

  test(
    promised(
      "tour.A6",
      "the session that the work is handed over to knows task, brief and files, and no role that was not stated",
    ),
    () => {
      const [first] = turns("Continuing work from session", '00001| import { readWord } from "./lexer.js"')
      for (const part of [`Task: ${seen.taskID}`, BRIEF]) expect(first).toContain(part)
      expect(first, "the session before had no role").not.toContain("# Worker")
      expect(seen.sights.begun).toContain(`That is ${seen.taskID}.`)
      expect(seen.commands.handoffs.output).toContain(`${seen.handedTo}  ${seen.taskID}  ${SAID.goal}\n`)
    },
  )

  if (binary === NEWEST)
    test.skipIf(!hasTmux)(promised("tour.A6", "in the TUI the draft stands in the new session's prompt"), () => {
      const draft = stripVTControlCharacters(seen.sights.draft)
      for (const part of ["Handoff Ready", "Continuing work from session", `Task: ${seen.taskID}`])
        expect(draft).toContain(part)
    })

  test(promised("tour.A7", "after a restart the work goes on, through another compaction"), () => {
    expect(seen.commands.goOn.output).toContain(`The release note is written. That is ${seen.taskID}.`)
    expect(seen.work.note).toBe(RELEASE_NOTE.text)
    expect(turnsAfterCompactions()[3]).toContain(`Task: ${seen.taskID}`)
    expect(seen.commands.show.output).toContain("Compaction 1: It went fine.")
  })

  test(promised("tour.A8", "baton observe shows the new session at work, with its task and the newest records"), () => {
    const terminal = stripVTControlCharacters(seen.observed.terminal)
    expect(terminal).toMatch(/● .+ {2}busy, \d/)
    expect(terminal).toContain(`${seen.taskID} (worker) ${TASK.title}`)
    expect(terminal).toContain(seen.handedTo)
    expect(seen.observed.webExit).toBe(0)
  })

  test.skipIf(!hasChromium)(
    promised("tour.A8", "the page of baton observe shows the same session and task in a browser"),
    () => {
      for (const part of ["my-project", seen.taskID, TASK.title, `Handoff to ${seen.handedTo}`])
        expect(seen.observed.page).toContain(part)
    },
  )

  test(promised("tour.A9", "uninstalled, all is as before but the users' and agents' work"), () => {
    const { before, after, home } = seen.trees
    expect(seen.commands.uninstall.exitCode).toBe(0)
    const paths = new Set([...Object.keys(before), ...Object.keys(after)])
    const changed = [...paths].filter((path) => before[path] !== after[path]).sort()
    // The first is OpenCode's mark in the repository.
    expect(changed).toEqual([".git/opencode", POLICY.path, RELEASE_NOTE.path, "src/parser.js"])
    expect(home.filter((path) => !EXPECTED_AT_HOME.test(path))).toEqual([])
    expect(seen.left.temporary.filter((name) => !EXPECTED_IN_TMPDIR.test(name))).toEqual([])
    expect(seen.left.processes).toEqual([])
  })

  // The page shows the newest version; 1.14 may compact twice and then prints other lines.
  if (NEWEST_OR_ALL.includes(NEWEST))
    test(promised("tour.B1", "the page of the tour quotes its commands, with lines of what they print"), () => {
      const ran = Object.values(seen.commands).map(({ command, output }) => [withoutIds(command), withoutIds(output)])
      const quoted = [...readFileSync(join(REPOSITORY, "docs/tour.md"), "utf8").matchAll(QUOTED)]
      expect(quoted.length).toBeGreaterThan(5)
      for (const [, command = "", lines = ""] of quoted) {
        const output = ran.find(([line]) => line === withoutIds(command))?.[1]
        if (output === undefined) throw new Error(`the walk does not run ${command}`)
        expectInOrder(output, lines.trimEnd().split("\n").map(withoutIds))
      }
    })
})
