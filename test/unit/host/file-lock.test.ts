import { spawnSync } from "node:child_process"
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test, vi } from "vitest"
import { createFileLock } from "../../../.opencode/baton/host/file-lock.ts"
import { runs } from "../../support/effort.ts"
import { temporaryFolder } from "../../support/files/temporary-folder.ts"

const setUp = () => {
  const folder = temporaryFolder()
  const path = join(folder, "lock")
  return {
    folder,
    path,
    lock: (now?: () => number) => createFileLock({ path, heartbeatMs: 5, ...(now ? { now } : {}) }),
  }
}

/** Writes the lock as a process with another pid would have left it. */
const leaveBehind = async (path: string, change: (lines: string[]) => string[]): Promise<void> => {
  const held = await createFileLock({ path }).tryAcquire()
  const text = readFileSync(path, "utf8")
  await held?.release()
  writeFileSync(path, change(text.split("\n")).join("\n"))
}

const deadPid = (): string => String(spawnSync(process.execPath, ["-e", ""]).pid)

describe("the lock", () => {
  test("is held by one at a time and free again after its release", async () => {
    const { folder, lock } = setUp()
    const held = await lock().tryAcquire()
    expect(await held?.isHeld()).toBe(true)
    expect(await lock().tryAcquire()).toBeUndefined()
    await held?.release()
    expect(readdirSync(folder)).toEqual([])
    expect(await lock().tryAcquire()).toBeDefined()
  })

  test("is free to its holder when its folder comes back that was away at its release", async () => {
    const { folder, lock } = setUp()
    const own = lock()
    const held = await own.tryAcquire()
    renameSync(folder, `${folder}-away`)
    writeFileSync(folder, "in the way")
    await held?.release()
    rmSync(folder)
    renameSync(`${folder}-away`, folder)
    expect(await lock().tryAcquire(), "another one waits until it is silent").toBeUndefined()
    expect(await own.tryAcquire()).toBeDefined()
  })

  test("goes to exactly one of many who ask at once, also when its holder is dead", async () => {
    const { path, lock } = setUp()
    for (let round = 0; round < runs(5); round += 1) {
      await leaveBehind(path, ([token = "", , host = ""]) => [token, deadPid(), host, ""])
      const taken = await Promise.all(Array.from({ length: 8 }, () => lock().tryAcquire()))
      const holders = taken.filter((held) => held !== undefined)
      // During a claim all attempts may fail once; the next one succeeds.
      const again = await lock().tryAcquire()
      if (again) holders.push(again)
      expect(holders).toHaveLength(1)
      await holders[0]?.release()
    }
  })

  test("is not taken from a process that lives, or from another machine or container", async () => {
    const { path, lock } = setUp()
    await leaveBehind(path, ([token = "", , host = ""]) => [token, String(process.ppid), host, ""])
    expect(await lock().tryAcquire()).toBeUndefined()
    const [token = ""] = readFileSync(path, "utf8").split("\n")
    writeFileSync(path, [token, deadPid(), "elsewhere", ""].join("\n"))
    expect(await lock().tryAcquire()).toBeUndefined()
  })

  test("is taken from a silent holder whose pid belongs to somebody else by now", async () => {
    const { path, lock } = setUp()
    await leaveBehind(path, ([token = "", , host = ""]) => [token, String(process.ppid), host, ""])
    expect(await lock(() => Date.now() + 61_000).tryAcquire()).toBeDefined()
  })

  test("is taken from an earlier process that had the pid of this one", async () => {
    const { path, lock } = setUp()
    await leaveBehind(path, (lines) => lines)
    const beforeThisProcess = new Date(Date.now() - process.uptime() * 1000 - 10_000)
    utimesSync(path, beforeThisProcess, beforeThisProcess)
    expect(await lock().tryAcquire()).toBeDefined()
  })

  test("is taken over when a crash cut it short, once it is old", async () => {
    const { path, lock } = setUp()
    writeFileSync(path, "")
    expect(await lock().tryAcquire()).toBeUndefined()
    expect(await lock(() => Date.now() + 61_000).tryAcquire()).toBeDefined()
  })

  test("is left to the process that claims it, and to the next one when that process is silent for 5 s", async () => {
    const { folder, path, lock } = setUp()
    await leaveBehind(path, ([, , host = ""]) => ["dead", deadPid(), host, ""])
    await leaveBehind(`${path}.dead.claim.tmp`, ([, , host = ""]) => ["gone", deadPid(), host, ""])
    const later = () => lock(() => Date.now() + 6_000).tryAcquire()
    expect(await lock().tryAcquire()).toBeUndefined()
    // The first attempt after that removes the claim.
    expect(await later()).toBeUndefined()
    const held = await later()
    expect(await held?.isHeld()).toBe(true)
    await held?.release()
    expect(readdirSync(folder)).toEqual([])
  })

  test("is known to be lost by a holder it was taken from, which then leaves the new one alone", async () => {
    const { path, lock } = setUp()
    const first = await lock().tryAcquire()
    const second = await lock(() => Date.now() + 61_000).tryAcquire()
    expect(await first?.isHeld()).toBe(false)
    await first?.release()
    expect(await second?.isHeld()).toBe(true)
    expect(existsSync(path)).toBe(true)
  })

  test("stays young while it is held", async () => {
    const { path, lock } = setUp()
    const held = await lock().tryAcquire()
    utimesSync(path, new Date(0), new Date(0))
    await vi.waitFor(() => expect(statSync(path).mtimeMs).toBeGreaterThan(Date.now() - 10_000))
    expect(await lock().tryAcquire()).toBeUndefined()
    await held?.release()
  })
})
