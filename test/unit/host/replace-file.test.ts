import { fstatSync, mkdtempSync, rmSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, test, vi } from "vitest"
import { replaceFile } from "../../../.opencode/baton/host/state.ts"
import { promised } from "../../requirements.ts"

const { flushed } = vi.hoisted(() => ({ flushed: [] as number[] }))

vi.mock("node:fs", async (original) => {
  const fs = await original<typeof import("node:fs")>()
  const fsync = (file: number, done: (error: NodeJS.ErrnoException | null) => void): void => {
    flushed.push(fstatSync(file).ino)
    fs.fsync(file, done)
  }
  return { ...fs, fsync }
})

test(
  promised("faults.F2", "a new file and the name of it are flushed to disk before it counts as written"),
  async () => {
    const folder = mkdtempSync(join(tmpdir(), "baton-replace-"))
    await replaceFile(join(folder, "record.json"), "{}")
    expect(flushed).toEqual([statSync(join(folder, "record.json")).ino, statSync(folder).ino])
    flushed.length = 0
    await replaceFile(join(folder, "record.json"), "{}", { isDurable: false })
    expect(flushed).toEqual([])
    rmSync(folder, { recursive: true })
  },
)
