import { readdirSync } from "node:fs"
import { basename } from "node:path"
import { describe, expect } from "vitest"
import { readSigner } from "../../../.opencode/baton/host/state-mark.ts"
import { learningKey } from "../../../.opencode/baton/learning/words.ts"
import { renderDetail, renderSigned } from "../../../.opencode/baton/ledger/learnings.ts"
import { promised } from "../../requirements.ts"
import { shareBundle } from "../../support/files/bundle-project.ts"
import { testsOnce } from "../../support/opencode/ends.ts"
import { BOTH_ENDS } from "../../support/opencode/opencode-binary.ts"

const SENTENCE = "No, use tabs instead of spaces."

const createProject = shareBundle()

describe.each(BOTH_ENDS)("baton learned on OpenCode $version", (binary) => {
  const once = testsOnce(binary)
  const setUp = () => {
    const { project, baton, prog, write } = createProject(binary)
    const add = (sentence: string, { folder = project, isSigned = true } = {}): string => {
      const source = { at: "2026-11-20T10:00:00.000Z", sessionID: "ses_A", messageID: "msg_1" }
      const named = { key: learningKey(sentence), folder, type: "correction", answered: "ran make" }
      const detail = { ...named, confirmed: true, times: 2, sources: [source] }
      const flags = ["-p", basename(project), "-c", "correction", "--detail", renderDetail(detail)]
      const id = prog("learn", ...flags, "--", sentence).stdout.trim()
      const sign = readSigner()
      if (isSigned && sign) {
        const learning = { id, summary: sentence, files: [] }
        prog("learn", "edit", "--detail", renderSigned(basename(project), learning, detail, sign), "--", id)
      }
      return id
    }
    const use = (sentence: string): void => {
      const given = [{ messageID: "msg_1", at: "2026-11-21T10:00:00.000Z", text: "", keys: [learningKey(sentence)] }]
      const session = { version: 1, sessionID: "ses_B", pid: 1, sayings: [], given }
      write(".opencode/state/learning/sessions/ses_B.json", session)
    }
    return { project, prog, add, use, learned: (...args: string[]) => baton("learned", ...args) }
  }

  once(
    promised(
      ["learning.C2", "learning.D1"],
      "baton learned lists, shows, forgets and exports what this project learned",
    ),
    () => {
      const { project, add, use, learned } = setUp()
      expect(learned()).toMatchObject({ stdout: "Nothing learned\n", status: 0 })
      const id = add(SENTENCE)
      add("No, use another folder's rule.", { folder: "/elsewhere" })
      use(SENTENCE)
      expect(learned().stdout).toBe(`${id}  correction    2× since 2026-11-20, used 1×  ${SENTENCE}\n`)
      expect(learned(project).stdout, "a folder alone is listed").toBe(learned("list", project).stdout)
      expect(learned(`../${basename(project)}`).stdout, "a relative one, too").toBe(learned("list", project).stdout)
      const shown = learned("show", id).stdout
      expect(shown).toContain("2026-11-20 10:00 in ses_A")
      expect(shown).toContain("Answered:   ran make")
      expect(shown).toContain("2026-11-21 10:00 in ses_B")
      const entry = { id, type: "correction", used: [{ sessionID: "ses_B" }] }
      expect(JSON.parse(learned("--json").stdout)).toMatchObject([entry])

      const before = readdirSync(project)
      const exported = learned("export").stdout
      expect(exported).toMatch(/^# Learned in .*\n\nRendered by `baton learned export`/)
      expect(exported).toContain(`## Corrections\n\n- ${SENTENCE} (2026-11-20, ${id})`)
      expect(readdirSync(project)).toEqual(before)

      expect(learned("forget", id, "--reason", "we moved on").stdout).toBe(`Forgotten: ${SENTENCE}\n`)
      expect(learned().stdout).toBe("Nothing learned\n")
      expect(learned("list", "--all").stdout).toContain("[stale]")
      expect(learned("show", id).stdout).toMatch(/Forgotten: {2}\d{4}-\d\d-\d\d by a person: we moved on/)
      expect(learned("forget", id, "--reason", "again").status).toBe(1)
      expect(learned("show", "lrn-000000")).toMatchObject({ status: 1, stderr: expect.stringContaining("no learning") })
    },
  )

  once(promised("learning.C3", "baton learned lists, shows, exports and forgets what agents stored, as theirs"), () => {
    const { project, add, learned, prog } = setUp()
    const flags = `-p ${basename(project)} -c charmap -f config/charmap.json --detail gulpfile.js`.split(" ")
    const note = prog("learn", ...flags, "--", "The charMap is generated.").stdout.trim()
    const said = add(SENTENCE)
    const listed = learned().stdout
    const line = `^${note}  agent         1× since \\d{4}-\\d\\d-\\d\\d, used 0×  The charMap is`
    expect(listed).toMatch(new RegExp(line, "m"))
    expect(listed).toContain(`${said}  correction`)
    const shown = learned("show", note).stdout
    for (const part of ["with prog learn", "gulpfile.js", "charmap", "config/charmap.json"])
      expect(shown).toContain(part)
    expect(JSON.parse(learned("--json").stdout)).toContainEqual(expect.objectContaining({ id: note, by: "agent" }))
    expect(learned("export").stdout).toContain("## Stored by agents\n\n- The charMap is generated.")
    expect(learned("forget", note, "--reason", "it moved").stdout).toBe("Forgotten: The charMap is generated.\n")
    expect(learned().stdout).not.toContain(note)
    expect(learned().stdout).toContain(said)
    expect(learned("list", "--all").stdout).toContain(`${note}  agent`)
  })

  once(
    promised("words.B2", "baton learned shows what an agent wrote in Baton's form as an agent's, with no origin"),
    () => {
      const { add, learned } = setUp()
      const id = add(SENTENCE, { isSigned: false })
      expect(learned().stdout).toMatch(new RegExp(`^${id}  agent         1× since .*, used 0×  ${SENTENCE}\n$`))
      const shown = learned("show", id).stdout
      for (const line of ["Type:       agent", "with prog learn"]) expect(shown).toContain(line)
      expect(shown, "no line of it begins like Baton's").not.toMatch(/^(?:Said|Confirmed|Answered):/m)
      expect(JSON.parse(learned("--json").stdout)).toMatchObject([{ id, by: "agent", type: "insight" }])
      expect(learned("export").stdout).toContain(`## Stored by agents\n\n- ${SENTENCE}`)
      expect(learned("forget", id, "--reason", "not mine").stdout).toBe(`Forgotten: ${SENTENCE}\n`)
      expect(learned().stdout).toBe("Nothing learned\n")
    },
  )
})
