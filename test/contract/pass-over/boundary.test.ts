import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync, readdirSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, onTestFinished, test } from "vitest"
import { createProcessRunner } from "../../../.opencode/baton/host/process.ts"
import { createBoundary } from "../../../.opencode/baton/pass-over/sandbox/boundary.ts"
import { promised } from "../../requirements.ts"
import { HAS_BUBBLEWRAP } from "../../support/bubblewrap.ts"
import { temporaryFolder } from "../../support/files/with-test.ts"

const run = createProcessRunner({ shell: undefined })
const leftOver = () => readdirSync(tmpdir()).filter((name) => name.startsWith("baton-boundary-"))

test.each([
  ["no program for it is there", { PATH: "/nowhere" }, "linux", "there is no bwrap on PATH"],
  ["the system has none", {}, "win32", "there is none on win32"],
])(promised("pass-over.B10", "where %s, a boundary is refused"), async (_what, env, platform, reason) => {
  const place = { sandbox: temporaryFolder(), kept: [] }
  expect(await createBoundary(place, { env, platform })).toMatchObject({
    kind: "refused",
    reason: expect.stringContaining(reason),
    fix: expect.stringContaining("install bubblewrap"),
  })
})

// scripts/test warns that these are left out.
describe.skipIf(!HAS_BUBBLEWRAP)("the boundary of a pass", () => {
  const open = async () => {
    const project = temporaryFolder()
    const sandbox = join(project, "a sandbox's place")
    mkdirSync(sandbox)
    const made = await createBoundary({ sandbox, kept: [project] })
    if (made.kind === "refused") throw new Error(made.reason)
    onTestFinished(() => made.remove())
    /** Starts a command as OpenCode does. */
    const say = (command: string, env: Record<string, string> = made.environment) =>
      run(["bash", "-c", made.guard(command)], { cwd: sandbox, deadlineMs: 20_000, env })
    return { project, sandbox, boundary: made, say }
  }

  test(
    promised(
      "pass-over.B10",
      "the boundary of a pass lets a shell write in the sandbox and in its own /tmp, and nowhere else",
    ),
    async () => {
      const { project, sandbox, say } = await open()
      const name = `of-a-pass-${process.pid}`
      const outside = [join(project, "x"), "../y", "/var/tmp/of-a-pass", "/dev/shm/../../var/of-a-pass"]
      const tries = outside.map((path) => `(echo out > '${path}') 2>/dev/null && echo "WROTE ${path}"`).join("\n")
      const writes = `echo "it's in" > made.txt; echo t > /tmp/${name}; cat /tmp/${name} "$TMPDIR/${name}"`
      const told = await say([writes, tries, "ls /run", "exit 7"].join("\n"))
      expect(told).toMatchObject({ kind: "exited", exitCode: 7 })
      const { stdout } = told as Extract<typeof told, { kind: "exited" }>
      expect(stdout).not.toContain("WROTE")
      expect(stdout.split("\n").slice(0, 2)).toEqual(["t", "t"])
      expect(stdout).not.toMatch(/docker|dbus|\.sock/)
      expect(readdirSync(sandbox)).toEqual(["made.txt"])
      expect(readdirSync(project)).toEqual(["a sandbox's place"])
      expect(existsSync(`/tmp/${name}`)).toBe(false)
    },
  )

  test(
    promised("pass-over.B10", "the boundary of a pass holds what a command starts, and cannot be left by it"),
    async () => {
      const { project, boundary, say } = await open()
      const tries = [
        `bash -c 'sh -c "echo out > ../x"'; mount -o remount,rw / ; echo out > ../x`,
        `(echo "exit 0" > ${boundary.environment.BASH_ENV}); ps -e | wc -l`,
      ]
      expect(await say(tries.join("\n"))).toMatchObject({ kind: "exited", exitCode: 0 })
      expect(readdirSync(project)).toEqual(["a sandbox's place"])
      expect(execFileSync("cat", [boundary.environment.BASH_ENV ?? ""], { encoding: "utf8" })).toContain("exec ")
    },
  )

  test(
    promised(
      "pass-over.B10",
      "the boundary of a pass lets root change nothing of the kernel, and leads back to no terminal or server",
    ),
    async () => {
      const { boundary, say } = await open()
      const tries = [
        // Its own value, so that a boundary with a hole does no harm.
        "read -r value < /proc/sys/vm/swappiness",
        '(echo "$value" > /proc/sys/vm/swappiness) 2>/dev/null && echo WROTE',
        "[ -w /proc/sysrq-trigger ] && echo WROTE",
        "tr '\\0' '\\n' < /proc/1/environ | grep secret; echo \"$OPENCODE_SERVER_PASSWORD\"",
        // The session of a process outside is 0 in here; only its own can have the user's terminal.
        'read -r _ _ _ _ _ session _ < /proc/self/stat; [ "$session" = 0 ] && echo OUTSIDE',
        "echo tried",
      ]
      const environment = { ...boundary.environment, OPENCODE_SERVER_PASSWORD: "secret" }
      expect(await say(tries.join("\n"), environment)).toMatchObject({ stdout: "\ntried\n" })
    },
  )

  test(promised("pass-over.B10", "the boundary of a pass fails a command whose shell did not go into it"), async () => {
    const { sandbox, say } = await open()
    const told = await say("echo out > made.txt", {})
    expect(told).toMatchObject({ kind: "exited", stderr: expect.stringContaining("no boundary") })
    expect(readdirSync(sandbox)).toEqual([])
    const made = await createBoundary({ sandbox, kept: [] }, { env: { ...process.env, SHELL: "/bin/sh" } })
    // Where sh is bash, it reads the file too.
    if (made.kind === "boundary") return made.remove()
    expect(made.reason).toContain("sh could not be started in it")
  })

  test(promised("pass-over.B10", "the boundary of a pass leaves nothing behind"), async () => {
    const before = leftOver()
    const { boundary } = await open()
    expect(leftOver().length).toBe(before.length + 1)
    await boundary.remove()
    expect(leftOver()).toEqual(before)
  })
})
