import { spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { hostname } from "node:os"
import { describe, expect, test } from "vitest"
import {
  hasEnded,
  isAlive,
  ownStart,
  readHost,
  startOfProcess,
} from "../../../.opencode/baton/host/process-identity.ts"
import { promised } from "../../requirements.ts"
import { endWithTest } from "../../support/files/with-test.ts"

const isLinux = process.platform === "linux"

describe("a process", () => {
  test(promised("claim.B1", "a process is on a host with its pid namespace, where the system has them"), () => {
    const namespace = isLinux ? / pid:\[\d+\]$/ : /$/
    expect(readHost()).toMatch(namespace)
    expect(readHost().replace(namespace, "")).toBe(hostname())
  })

  test.each([
    { of: "this one", pid: process.pid, startedAt: ownStart(), ended: false },
    {
      of: "its parent, with the start that is read again",
      pid: process.ppid,
      startedAt: startOfProcess(process.ppid),
      ended: false,
    },
    { of: "an earlier one with a pid that lives", pid: process.pid, startedAt: "1", ended: true },
    { of: "one of an unknown start with a pid that lives", pid: process.pid, startedAt: "", ended: undefined },
    { of: "one whose pid is free", pid: spawnSync("true").pid, startedAt: "", ended: true },
    { of: "none", pid: 0, startedAt: "1", ended: true },
  ])("a process known by pid and start, $of, has ended: $ended", ({ pid, startedAt, ended }) => {
    expect(hasEnded(pid, startedAt)).toBe(ended)
  })

  test.runIf(isLinux)("a process has ended when its parent has not noticed its end", async () => {
    const shell = endWithTest(spawn("sh", ["-c", "sleep 60 & echo $!; wait"], { stdio: ["ignore", "pipe", "ignore"] }))
    const [line] = await once(shell.stdout, "data")
    const pid = Number(String(line))
    const startedAt = startOfProcess(pid)
    expect(hasEnded(pid, startedAt)).toBe(false)
    // A stopped shell notices nothing.
    shell.kill("SIGSTOP")
    process.kill(pid, "SIGKILL")
    await expect.poll(() => startOfProcess(pid)).toBe("ended")
    expect(isAlive(pid)).toBe(true)
    expect(hasEnded(pid, startedAt)).toBe(true)
  })
})
