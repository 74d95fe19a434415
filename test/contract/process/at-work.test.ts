import { spawn } from "node:child_process"
import { once } from "node:events"
import { expect, onTestFinished, test } from "vitest"
import { isTaskAtWork } from "../../../.opencode/baton/work/processes.ts"
import { promised } from "../../requirements.ts"

const start = async (mark: string): Promise<void> => {
  const child = spawn("sleep", ["60"], { env: { PATH: process.env.PATH, BATON_RUN: mark }, stdio: "ignore" })
  onTestFinished(() => void child.kill("SIGKILL"))
  await once(child, "spawn")
}

test(promised("work.B1", "a task is at work while an agent of it, or a check, runs on this machine"), async () => {
  expect(isTaskAtWork("ts-aaaaaa")).toBe(false)
  await start("ts-aaaaaa.2")
  await start("check.ts-bbbbbb.1")
  expect(["ts-aaaaaa", "ts-bbbbbb", "ts-aaaaa", "ts-cccccc"].map(isTaskAtWork)).toEqual([true, true, false, false])
})
