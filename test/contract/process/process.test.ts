import { spawn, spawnSync } from "node:child_process"
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest"
import type { ProcessOutcome, RunProcess } from "../../../.opencode/baton/host/process.ts"
import { createProcessRunner } from "../../../.opencode/baton/host/process.ts"
import { isAlive } from "../../../.opencode/baton/host/process-identity.ts"
import { promised } from "../../requirements.ts"
import { readProcesses } from "../../support/files/process-table.ts"
import { temporaryFolder } from "../../support/files/with-test.ts"
import { NEWEST, OLDEST, type OpenCodeBinary, REPOSITORY } from "../../support/opencode/opencode-binary.ts"

type Host = { run: RunProcess; close: () => void }

/** The `$` implementation, running inside a real OpenCode binary; `close` ends that process. */
const startShellHost = (binary: OpenCodeBinary): Host => {
  const script = join(REPOSITORY, "test", "fixtures", "process-shell-host.ts")
  const host = spawn(binary.path, ["--no-env-file", "--config=/dev/null", "run", script], {
    env: { ...process.env, BUN_BE_BUN: "1" },
    stdio: ["pipe", "pipe", "inherit"],
  })
  const waiting = new Map<number, (outcome: ProcessOutcome) => void>()
  createInterface({ input: host.stdout }).on("line", (line) => {
    const { id, outcome } = JSON.parse(line) as { id: number; outcome: ProcessOutcome }
    waiting.get(id)?.(outcome)
    waiting.delete(id)
  })
  let next = 0
  return {
    run: (argv, options) =>
      new Promise((resolve) => {
        next += 1
        waiting.set(next, resolve)
        // JSON has no undefined, which means a variable to remove.
        const call = JSON.stringify({ id: next, argv, options }, (_, value: unknown) => value ?? null)
        host.stdin.write(`${call}\n`)
      }),
    close: () => host.kill("SIGKILL"),
  }
}

const HOSTS: readonly (readonly [string, () => Host])[] = [
  ["node:child_process", () => ({ run: createProcessRunner({ shell: undefined }), close: () => {} })],
  [`$ of OpenCode ${OLDEST.version}`, () => startShellHost(OLDEST)],
  [`$ of OpenCode ${NEWEST.version}`, () => startShellHost(NEWEST)],
]

const DEADLINE_MS = 20_000
const MODULE = join(REPOSITORY, ".opencode", "baton", "host", "process.ts")

test.each([OLDEST, NEWEST])("a script on OpenCode $version runs nothing that its folder names", ({ path }) => {
  const folder = temporaryFolder()
  // With it Bun looks for no package elsewhere.
  mkdirSync(join(folder, "node_modules"))
  const files = {
    "theirs.ts": 'console.log("theirs")',
    "tsconfig.json": JSON.stringify({ compilerOptions: { paths: { named: ["./theirs.ts"] } } }),
    "bunfig.toml": 'preload = ["./theirs.ts"]',
    ".env": "SET=theirs",
  }
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
  const script = 'await import("named").catch(() => {}); console.log(process.env.SET ?? "ours")'
  const options = JSON.stringify({ cwd: folder, deadlineMs: DEADLINE_MS })
  const outer = `const { createProcessRunner, runScript } = await import(${JSON.stringify(MODULE)})
      const run = createProcessRunner({ shell: undefined })
      console.log(JSON.stringify(await runScript(run, ${JSON.stringify(script)}, ${options})))`
  const { stdout } = spawnSync(path, ["-e", outer], { env: { BUN_BE_BUN: "1" }, encoding: "utf8" })
  expect(JSON.parse(stdout)).toEqual({ kind: "exited", exitCode: 0, stdout: "ours\n", stderr: "" })
})

const ECHO_ARGUMENTS = "process.stdout.write(JSON.stringify(process.argv.slice(1)))"

describe.each(HOSTS)("the process runner on %s", (_name, start) => {
  let folder = ""
  let host: Host
  const run = (
    argv: [string, ...string[]],
    options: Partial<Parameters<RunProcess>[1]> = {},
  ): Promise<ProcessOutcome> => host.run(argv, { cwd: folder, deadlineMs: DEADLINE_MS, ...options })

  const script = (name: string, text: string): string => {
    const path = join(folder, name)
    writeFileSync(path, text)
    chmodSync(path, 0o755)
    return path
  }

  beforeAll(() => {
    folder = realpathSync(mkdtempSync(join(tmpdir(), "baton-process-")))
    host = start()
  })
  afterAll(() => {
    host.close()
    rmSync(folder, { recursive: true, force: true })
  })

  const ARGUMENTS: readonly string[] = [
    ...[`it's "quoted" \\" \\' \\\\`, "`id` $(id) ${HOME} $HOME $$ !!", "one\ntwo\r\nthree\n"],
    ...["a && b; c | d > e < f & # g", "* ? [a-z] {a,b} ~ ~/x", "🎉 naïve 日本語 \u{10FFFF}", "  ", ""],
    ...["-rf", "=x", "\u0001\u0007\u001b[31m\t\u007f", "é".repeat(60_000)],
  ]
  test(promised("ledger.D1", "a program gets every argument exactly"), async () => {
    const outcome = await run([process.execPath, "-e", ECHO_ARGUMENTS, "--", ...ARGUMENTS])
    expect(outcome).toMatchObject({ kind: "exited", exitCode: 0, stderr: "" })
    expect(outcome.kind === "exited" ? JSON.parse(outcome.stdout) : []).toEqual(ARGUMENTS)
  })

  test.each([
    ["gives exit code, stdout and stderr apart", "echo out; echo err >&2; exit 3", 3, "out\n", "err\n"],
    ["takes a program that a signal ended for a failed one", "kill -9 $$", 137, "", expect.any(String)],
  ])("the process runner %s", async (_, command, exitCode, stdout, stderr) => {
    expect(await run(["sh", "-c", command])).toEqual({ kind: "exited", exitCode, stdout, stderr })
  })

  test("a program runs in the given folder, with environment and stdin as asked for", async () => {
    const outcome = await run(["sh", "-c", 'pwd; echo "$BATON_TEST"; echo "${HOME-unset}"; [ -n "$PATH" ]'], {
      env: { BATON_TEST: "a b", HOME: undefined },
    })
    expect(outcome).toMatchObject({ exitCode: 0, stdout: `${folder}\na b\nunset\n` })
    expect(await run(["cat"])).toMatchObject({ exitCode: 0, stdout: "" })
    const stdin = "x".repeat(2_000_000)
    expect(await run(["wc", "-c"], { stdin })).toMatchObject({ exitCode: 0 })
    expect(await run(["cat"], { stdin: "typed\n" })).toMatchObject({ exitCode: 0, stdout: "typed\n" })
    expect(await run(["true"], { stdin })).toMatchObject({ kind: "exited", exitCode: 0 })
  })

  test("the process runner says so when the program or folder is missing, or the arguments cannot be carried", async () => {
    expect(await run([join(folder, "missing")])).toMatchObject({ kind: "not-started" })
    expect(await run(["baton-no-such-program"])).toMatchObject({ kind: "not-started" })
    expect(await run(["true"], { cwd: join(folder, "missing") })).toMatchObject({ kind: "not-started" })
    const unexecutable = script("unexecutable", "#!/bin/sh\n")
    chmodSync(unexecutable, 0o644)
    expect(await run([unexecutable])).toMatchObject({ kind: "not-started" })
    expect(await run(["true", "x".repeat(140_000)])).toMatchObject({ kind: "not-started" })
    expect(await run(["true", "a\0b"])).toMatchObject({ kind: "not-started", cause: expect.stringContaining("NUL") })
  })

  test("the process runner keeps only the first part of an endless output, and the program ends", async () => {
    const outcome = await run(["sh", "-c", "yes; echo never"], { maxOutputBytes: 1000 })
    expect(outcome).toMatchObject({ kind: "exited", stdout: "y\n".repeat(500) })
    const complaints = await run(["sh", "-c", "yes >&2"], { maxOutputBytes: 1000 })
    expect(complaints).toMatchObject({ kind: "exited", stdout: "", stderr: "y\n".repeat(500) })
  })

  test(
    promised("ledger.D1", "the process runner ends a hung program and what it started at the deadline"),
    async () => {
      const pids = join(folder, "pids")
      const hang = script("hang", `#!/bin/sh\nsleep 1000 &\necho "$$ $!" > ${pids}.new; mv ${pids}.new ${pids}\nwait\n`)
      // Usually long enough for the program to start, even on a busy machine; otherwise it is repeated.
      await vi.waitFor(
        async () => {
          expect(await run([hang], { deadlineMs: 500 })).toEqual({ kind: "timed-out", deadlineMs: 500 })
          expect(existsSync(pids)).toBe(true)
        },
        { timeout: 15_000, interval: 1 },
      )
      const [program, child] = readFileSync(pids, "utf8").split(" ").map(Number)
      expect(program).toBeGreaterThan(1)
      await expect.poll(() => [program, child].map((pid) => isAlive(pid ?? 0))).toEqual([false, false])
    },
  )

  test("the process runner ends a program that the deadline overtakes before it has started", async () => {
    const late = script("late", "#!/bin/sh\nsleep 1000\n")
    expect(await run([late], { deadlineMs: 0 })).toMatchObject({ kind: "timed-out" })
    expect(await run(["true"])).toMatchObject({ exitCode: 0 })
    const running = async () => (await readProcesses(process.platform)).filter(({ args }) => args.includes(late))
    await expect.poll(running).toEqual([])
  })

  test("the process runner keeps calls apart that run at the same time", async () => {
    const numbers = Array.from({ length: 20 }, (_, at) => String(at))
    const outcomes = await Promise.all(numbers.map((number) => run(["printf", "%s", number])))
    expect(outcomes.map((outcome) => outcome.kind === "exited" && outcome.stdout)).toEqual(numbers)
  })
})
