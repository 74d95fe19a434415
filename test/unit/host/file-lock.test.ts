import { spawn, spawnSync } from "node:child_process"
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, onTestFinished, test } from "vitest"
import { createFileLock } from "../../../.opencode/baton/host/file-lock.ts"
import { startOfProcess } from "../../../.opencode/baton/host/process-identity.ts"
import { promised } from "../../requirements.ts"
import { runs } from "../../support/effort.ts"
import { endWithTest, temporaryFolder } from "../../support/files/with-test.ts"

const deadPid = (): string => String(spawnSync(process.execPath, ["-e", ""]).pid)
const livingPid = (): string => String(process.ppid)

const setUp = () => {
  const folder = temporaryFolder()
  const path = join(folder, "lock")
  const lock = (now = Date.now) => {
    const { tryAcquire } = createFileLock({ path, heartbeatMs: 5, now })
    return {
      tryAcquire: async () => {
        const held = await tryAcquire()
        onTestFinished(() => held?.release())
        return held
      },
    }
  }
  /** Writes the lock, or another file of it, as a process with this pid would have left it. */
  const leaveBehind = async (
    owner: { pid?: string; host?: string; token?: string; startedAt?: string | undefined },
    at = path,
  ): Promise<void> => {
    const held = await createFileLock({ path: at }).tryAcquire()
    const [token, pid, host, startedAt] = readFileSync(at, "utf8").split("\n")
    await held?.release()
    const left = { token, pid, host, startedAt, ...owner }
    writeFileSync(at, [left.token, left.pid, left.host, left.startedAt, ""].join("\n"))
  }
  return { folder, path, lock, leaveBehind }
}

const inSeconds = (seconds: number) => () => Date.now() + seconds * 1_000

describe("the lock", () => {
  test("the lock is free to its holder when its folder comes back that was away at its release", async () => {
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

  test("the lock goes to exactly one of many who ask at once, also when its holder is dead", async () => {
    const { lock, leaveBehind } = setUp()
    for (let round = 0; round < runs(5); round += 1) {
      await leaveBehind({ pid: deadPid() })
      const taken = await Promise.all(Array.from({ length: 8 }, () => lock().tryAcquire()))
      const holders = taken.filter((held) => held !== undefined)
      // During a claim all attempts may fail once; the next one succeeds.
      const again = await lock().tryAcquire()
      if (again) holders.push(again)
      expect(holders).toHaveLength(1)
      await holders[0]?.release()
    }
  })

  test(
    promised("pass-over.B7", "the lock is not taken from a process that lives, however long it was silent"),
    async () => {
      const { lock, leaveBehind } = setUp()
      const own = await lock().tryAcquire()
      expect(await lock(inSeconds(3_600)).tryAcquire()).toBeUndefined()
      await own?.release()
      await leaveBehind({ pid: livingPid(), startedAt: startOfProcess(process.ppid) })
      expect(await lock(inSeconds(3_600)).tryAcquire()).toBeUndefined()
      const stopped = endWithTest(spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"]))
      const startedAt = startOfProcess(stopped.pid ?? 0)
      stopped.kill("SIGSTOP")
      await leaveBehind({ pid: String(stopped.pid), startedAt })
      expect(await lock(inSeconds(3_600)).tryAcquire()).toBeUndefined()
      stopped.kill("SIGKILL")
      await expect.poll(() => lock().tryAcquire()).toBeDefined()
    },
  )

  const LIVING = { pid: livingPid(), startedAt: startOfProcess(process.ppid) }
  const ELSEWHERE = { pid: deadPid(), host: "elsewhere" }
  const now = () => 0
  const inAYear = () => 365 * 86_400
  const beforeThisProcess = () => -process.uptime() - 10
  test.each([
    { of: "a process that lives", left: LIVING, isTaken: false },
    { of: "another machine or container", left: ELSEWHERE, isTaken: false },
    { of: "another machine whose clock was set back", left: ELSEWHERE, writtenIn: inAYear, isTaken: true },
    { of: "an earlier process with a pid that lives", left: { ...LIVING, startedAt: "1" }, isTaken: true },
    { of: "an unknown start, silent, its pid another's", left: { ...LIVING, startedAt: "" }, after: 61, isTaken: true },
    {
      of: "an unknown start, before this process",
      left: { startedAt: "" },
      writtenIn: beforeThisProcess,
      isTaken: true,
    },
  ])("a lock of $of is taken: $isTaken", async ({ left, writtenIn = now, after = 0, isTaken }) => {
    const { path, lock, leaveBehind } = setUp()
    await leaveBehind(left)
    const written = new Date(inSeconds(writtenIn())())
    utimesSync(path, written, written)
    expect((await lock(inSeconds(after)).tryAcquire()) !== undefined).toBe(isTaken)
  })

  test("the lock is taken over when a crash cut it short, once it is old", async () => {
    const { path, lock } = setUp()
    writeFileSync(path, "")
    expect(await lock().tryAcquire()).toBeUndefined()
    expect(await lock(inSeconds(61)).tryAcquire()).toBeDefined()
  })

  test("the lock is left to the process that claims it, and to the next one when that process is silent for 5 s", async () => {
    const { folder, path, lock, leaveBehind } = setUp()
    await leaveBehind({ token: "dead", pid: deadPid() })
    await leaveBehind({ token: "gone", pid: deadPid() }, `${path}.dead.claim.tmp`)
    const later = () => lock(inSeconds(6)).tryAcquire()
    expect(await lock().tryAcquire()).toBeUndefined()
    // The first attempt after that removes the claim.
    expect(await later()).toBeUndefined()
    const held = await later()
    expect(await held?.isHeld()).toBe(true)
    await held?.release()
    expect(readdirSync(folder)).toEqual([])
  })

  test("the lock is known to be lost by a holder it was taken from, which then leaves the new one alone", async () => {
    const { path, lock } = setUp()
    const first = await lock().tryAcquire()
    // As one of another container that has been silent.
    writeFileSync(path, readFileSync(path, "utf8").replace(/(\n.*\n).*/, "$1elsewhere"))
    const second = await lock(inSeconds(61)).tryAcquire()
    expect(await first?.isHeld()).toBe(false)
    await first?.release()
    expect(await second?.isHeld()).toBe(true)
    expect(existsSync(path)).toBe(true)
  })

  test("the lock stays young while it is held", async () => {
    const { path, lock } = setUp()
    const held = await lock().tryAcquire()
    utimesSync(path, new Date(0), new Date(0))
    await expect.poll(() => Date.now() - statSync(path).mtimeMs).toBeLessThan(10_000)
    expect(await lock().tryAcquire()).toBeUndefined()
    await held?.release()
  })
})
