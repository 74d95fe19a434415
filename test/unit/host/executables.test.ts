import { mkdirSync, writeFileSync } from "node:fs"
import { delimiter, join, relative } from "node:path"
import { describe, expect, test } from "vitest"
import { findExecutables } from "../../../.opencode/baton/host/process.ts"
import { temporaryFolder } from "../../support/files/with-test.ts"

describe("programs on PATH", () => {
  test("are sought in absolute folders alone: a relative one would run what the project holds", async () => {
    const folder = temporaryFolder()
    writeFileSync(join(folder, "c2c"), "", { mode: 0o755 })
    const path = ["", relative(process.cwd(), folder), folder].join(delimiter)
    expect(await findExecutables("c2c", path)).toEqual([join(folder, "c2c")])
  })

  test("are files that may be run, each once and in PATH's order", async () => {
    const root = temporaryFolder()
    for (const [name, mode] of Object.entries({ a: 0o755, b: 0o644, c: 0o755 })) {
      mkdirSync(join(root, name))
      writeFileSync(join(root, name, "tool"), "", { mode })
    }
    mkdirSync(join(root, "d", "tool"), { recursive: true })
    const path = ["c", "b", "d", "a", "c"].map((name) => join(root, name)).join(delimiter)
    expect(await findExecutables("tool", path)).toEqual([join(root, "c", "tool"), join(root, "a", "tool")])
  })
})
