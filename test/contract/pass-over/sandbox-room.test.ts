import { existsSync, statfsSync, truncateSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { freeSpaceOn, splitByFreeSpace } from "../../../.opencode/baton/pass-over/sandbox/snapshot.ts"
import { promised } from "../../requirements.ts"
import { temporaryFolder } from "../../support/files/with-test.ts"
import { connectSandboxes, createPassProject, passPlace, readIn, succeed } from "../../support/opencode/pass-project.ts"

const MEGABYTE = 1024 * 1024

describe("a disk that is nearly full", () => {
  test(
    promised(
      "pass-over.B8",
      "a disk that is nearly full keeps what fits; what does not is named and stays in the copy alone",
    ),
    async () => {
      const { root, begin } = createPassProject()
      let free = Number.POSITIVE_INFINITY
      const passes = connectSandboxes(root, root, { freeSpace: () => free })
      const writes = { "small.txt": "small\n", "a.txt": "changed\n", "sparse.bin": "" }
      const { sandbox: copy } = await begin("p1", { passes, writes })
      truncateSync(join(copy, "sparse.bin"), 900 * MEGABYTE)
      free = 10 * MEGABYTE
      const held = succeed(await passes.collect("p1"))
      expect(held.modifications.map(({ path }) => path)).toEqual(["a.txt", "small.txt"])
      expect(held.skipped).toEqual([{ path: "sparse.bin", reason: expect.stringContaining("900 MB do not fit") }])
      expect(existsSync(join(copy, "sparse.bin")), "the only version").toBe(true)
      expect(succeed(await passes.apply("p1")).complete).toBe(true)
      expect(readIn(root, "small.txt")).toBe("small\n")
      expect(existsSync(join(root, "sparse.bin"))).toBe(false)
    },
  )

  test(
    promised("pass-over.B8", "on a disk that is nearly full what was there before a change or a removal counts, too"),
    async () => {
      const { root, begin } = createPassProject({ files: { "large.txt": "x".repeat(MEGABYTE), "a.txt": "a\n" } })
      let free = Number.POSITIVE_INFINITY
      const passes = connectSandboxes(root, root, { freeSpace: () => free })
      await begin("p1", { passes, writes: { "large.txt": "small now\n", "a.txt": "b\n" } })
      free = MEGABYTE / 2
      const held = succeed(await passes.collect("p1"))
      expect(held.modifications.map(({ path }) => path)).toEqual(["a.txt"])
      expect(held.skipped.map(({ path }) => path)).toEqual(["large.txt"])
    },
  )

  test(promised("pass-over.B8", "a disk that is nearly full gets no copy that would fill it"), async () => {
    const { root } = createPassProject({ files: { "large.txt": "x".repeat(MEGABYTE) } })
    const passes = connectSandboxes(root, root, { freeSpace: () => MEGABYTE / 2 })
    expect(await passes.create("p1", { canModify: true })).toMatchObject({
      kind: "refused",
      reason: expect.stringContaining("leaves a twentieth of the disk free"),
    })
    expect(existsSync(passPlace(root, "p1", "copy"))).toBe(false)
  })

  test(promised("pass-over.B8", "a disk that is nearly full is measured: a twentieth of it is no room"), () => {
    const folder = temporaryFolder()
    const { bavail, blocks, bsize } = statfsSync(folder)
    const freeSpace = Math.max(0, (bavail - blocks / 20) * bsize)
    expect(Math.abs(freeSpaceOn(folder) - freeSpace)).toBeLessThan(256 * MEGABYTE)
    expect(freeSpaceOn(join(folder, "missing"))).toBe(Number.POSITIVE_INFINITY)
    expect(splitByFreeSpace([5, 1, 3, 2], (size) => size, 6)).toEqual({ fit: [1, 3, 2], over: [5] })
  })
})

describe("a process that stood still", () => {
  test(
    promised(
      "pass-over.B7",
      "a process that stood still keeps its pass, and if it lost it, lets in no tool and carries nothing",
    ),
    async () => {
      const { root, begin, passes } = createPassProject()
      const { sandbox: copy } = await begin("p1", { writes: { "early.txt": "early\n" } })
      const other = connectSandboxes(root, root, { lockWaitMs: 0 })
      expect(await other.collect("p1")).toMatchObject({ kind: "refused", code: "busy" })
      // As one of another container that has been silent for an hour.
      const lock = join(copy, "../work.lock")
      writeFileSync(lock, "0123456789abcdef\n1\nelsewhere\n1\n")
      writeFileSync(join(copy, "late.txt"), "late\n")
      const lost = { kind: "refused", code: "wrong-state", reason: expect.stringContaining("took the pass pass_") }
      expect(await passes.ready("p1")).toMatchObject(lost)
      expect(await passes.collect("p1")).toMatchObject(lost)
    },
  )
})
