import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { tool } from "@opencode-ai/plugin/tool"
import { describe, expect, test } from "vitest"
import {
  mayHaveSetting,
  readSettings,
  settingsOrDefaults,
  settingsSchema,
} from "../../../.opencode/baton/host/settings.ts"
import { promised } from "../../requirements.ts"
import { createRecordedLog, temporaryFolder } from "../../support/unit.ts"

const withSettings = (text?: string): string => {
  const root = temporaryFolder()
  mkdirSync(join(root, ".opencode"))
  if (text !== undefined) writeFileSync(join(root, ".opencode", "baton.json"), text)
  return root
}

const OFF = { enabled: false }

describe("the settings", () => {
  test(
    promised(["handoff.C3", "live-state.A2"], "the settings have a default for everything beside what is set"),
    async () => {
      const handoff = { maxFiles: 20, maxKilobytes: 400 }
      const expected = {
        handoff,
        liveState: { enabled: true },
        learning: { enabled: true },
        claims: "shared",
        compaction: "baton",
        autoTask: false,
        notices: "all",
      }
      const [none, empty] = [await readSettings(withSettings()), await readSettings(withSettings("{}"))]
      expect(none).toEqual({ kind: "settings", settings: expected, isDefault: true })
      expect(empty).toEqual({ kind: "settings", settings: expected, isDefault: false })
      const text = '{"handoff":{"maxFiles":3},"liveState":{"enabled":false,"strict":true}}'
      const liveState = { enabled: false, strict: true }
      const settings = { handoff: { maxFiles: 3, maxKilobytes: 400 }, liveState }
      expect(await readSettings(withSettings(text))).toMatchObject({ settings })
    },
  )

  test(
    promised("package.A4", "settings beside a global copy count in a project that has neither a copy nor settings"),
    () => {
      const shared = join(withSettings('{"autoHandoff":{}}'), ".opencode")
      expect(mayHaveSetting(withSettings(), "autoHandoff", shared)).toBe(true)
      expect(mayHaveSetting(withSettings(), "autoTask", shared)).toBe(false)
      expect(mayHaveSetting(withSettings("{}"), "autoHandoff", shared)).toBe(false)
    },
  )

  test.each([
    ["{", /JSON/],
    ['{"handoff":{"maxFiles":-1}}', /^handoff\.maxFiles: /],
    ['{"handoff":{"maxfiles":3}}', /^handoff: .*maxfiles/],
    ['{"liveState":{"strict":"yes"}}', /^liveState\.strict: .*boolean/],
    ['{"claims":"alone"}', /^claims: .*exclusive/],
    ['{"compaction":"off"}', /^compaction: .*opencode/],
    ["[]", /object/],
  ])(promised("handoff.C3", "%s is refused with the place and what was expected"), async (text, reason) => {
    const root = withSettings(text)
    expect(await readSettings(root)).toMatchObject({ kind: "unusable", reason: expect.stringMatching(reason) })
    const log = createRecordedLog()
    expect((await settingsOrDefaults(root, log)).handoff.maxFiles).toBe(20)
    expect(log.lines).toMatchObject([{ level: "warn", extra: { path: join(root, ".opencode", "baton.json") } }])
  })

  test.each([
    ['{"learning":{"enabled":false},"handof":{}}', { learning: OFF }],
    ['{"learning":{"enabled":false,"projet":"x"}}', { learning: OFF }],
    ['{"learning":{},"handoff":{"maxFiles":-1,"maxKilobytes":7}}', { handoff: { maxFiles: 20, maxKilobytes: 7 } }],
    ['{"liveState":{"enabled":false,"strict":3},"handoff":3}', { liveState: OFF, handoff: { maxFiles: 20 } }],
    ['{"notices":"loud","claims":"off"}', { notices: "all", claims: "off", learning: { enabled: true } }],
  ])(promised("handoff.C3", "%s: a typo in one place undoes nothing in another"), async (text, settings) => {
    expect(await settingsOrDefaults(withSettings(text), createRecordedLog())).toMatchObject(settings)
  })

  test.each([
    ["[]", { learning: OFF, liveState: OFF }],
    ['{"learning":{"enabled":false', { learning: OFF, liveState: OFF }],
    ['{"learning":false}', { learning: OFF, liveState: { enabled: true } }],
    ['{"learning":{"enabled":"no"}}', { learning: OFF }],
    ['{"learning":{"enable":false}}', { learning: OFF }],
    ['{"liveState":{"enabled":0}}', { liveState: OFF, learning: { enabled: true } }],
    ['{"autoTask":"yes","autoHandoff":"yes"}', { autoTask: false, autoHandoff: undefined }],
  ])(
    promised("people.C3", "%s: what it may have switched off is off, and the user is told"),
    async (text, settings) => {
      const told: string[] = []
      const notices = ({ message }: { message: string }) => void told.push(message)
      const read = await settingsOrDefaults(withSettings(text), createRecordedLog(), notices)
      expect({ autoHandoff: undefined, ...read }).toMatchObject(settings)
      expect(told).toEqual([expect.stringMatching(/baton\.json: .*What can be off is off\.$/)])
    },
  )

  test(promised("people.C3", "the settings may have comments and trailing commas"), async () => {
    const text =
      '\ufeff{\n  // Not here: "learning": {}\n  "learning": { "enabled": false, /* why */ "project": "a // b, }" },\n}\n// end'
    const settings = { learning: { enabled: false, project: "a // b, }" } }
    expect(await readSettings(withSettings(text))).toMatchObject({ kind: "settings", settings })
  })

  test(promised("handoff.C3", "the settings are published as the JSON schema that they are read with"), async () => {
    const schema = tool.schema.toJSONSchema(settingsSchema(tool.schema), { io: "input" })
    await expect(`${JSON.stringify(schema, null, 2)}\n`).toMatchFileSnapshot("../../../docs/baton.schema.json")
  })
})
