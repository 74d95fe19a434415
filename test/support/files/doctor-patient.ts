import { mkdirSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { CHECKS } from "../../../.opencode/baton/doctor/checks.ts"
import { createReport, type Report } from "../../../.opencode/baton/doctor/report.ts"
import { createProcessRunner } from "../../../.opencode/baton/host/process.ts"
import { stateRoot } from "../../../.opencode/baton/host/project.ts"
import { markState } from "../../../.opencode/baton/host/state-mark.ts"
import { NEWEST, REPOSITORY } from "../opencode/opencode-binary.ts"
import { createSmallCheckout, runScript } from "./small-checkout.ts"

/** Answers like a release and acts as Bun like the real one, without its second of start-up. */
const openCodeScript = (version: string): string =>
  `[ -n "\${BUN_BE_BUN-}" ] && exec '${NEWEST.path}' "$@"\n[ "$1" = --version ] && echo '${version}'\n`

/** A healthy project with its own home and PATH, for tests that break it and run doctor. */
export const createPatient = () => {
  const checkout = createSmallCheckout()
  const { root, project } = checkout
  const home = join(root, "home")
  const programs = join(root, "programs")
  const temporary = join(root, "temporary")
  for (const folder of [home, programs, temporary]) mkdirSync(folder)
  checkout.install()
  checkout.write(".opencode/node_modules/@opencode-ai/plugin/package.json", "{}\n")
  const program = (name: string, script: string) =>
    writeFileSync(join(programs, name), `#!/bin/sh\n${script}`, { mode: 0o755 })
  program("opencode", openCodeScript("1.18.33"))
  const { BATON_STATE_KEY } = process.env
  const environment = { PATH: `${programs}:/usr/bin:/bin`, HOME: home, TMPDIR: temporary, BATON_STATE_KEY }
  const run = (args: readonly string[], extra: Record<string, string> = {}) =>
    runScript([join(REPOSITORY, "scripts", "doctor"), ...args], { cwd: root, env: { ...environment, ...extra } })
  return {
    ...checkout,
    /** Writes a file of the project; one of the state is as Baton would have written it. */
    write: (path: string, text: string): void => {
      checkout.write(path, text)
      if (path.startsWith(".opencode/state/")) markState(stateRoot(project))
    },
    home,
    environment,
    delete: (path: string) => rmSync(join(project, path), { recursive: true }),
    /** Puts a program first on PATH. */
    program,
    doctor: (...args: string[]) => run(args),
    /** `doctor --json`, parsed. */
    examine: (extra?: Record<string, string>) => {
      const { exitCode, stdout, stderr } = run([project, "--json"], extra)
      try {
        return { exitCode, report: JSON.parse(stdout) as Report }
      } catch (cause) {
        throw new Error(`doctor --json printed no document: ${stdout}${stderr}`, { cause })
      }
    },
    /** The report of one check, run in this process; it starts only processes of the check itself. */
    look: (id: string, extra: Record<string, string> = {}) => {
      const scratch = join(temporary, "scratch")
      mkdirSync(scratch, { recursive: true })
      const run = createProcessRunner({ shell: undefined })
      const subject = { root: realpathSync(project), home, environment: { ...environment, ...extra }, scratch, run }
      return createReport(
        subject,
        CHECKS.filter((check) => check.id === id),
      )
    },
  }
}

export type Patient = ReturnType<typeof createPatient>

/** Creates a folder for PATH with the usual programs of a shell and no runtime for TypeScript. */
export const createBarePath = (root: string): string => {
  const folder = join(root, "bare")
  mkdirSync(folder)
  for (const name of ["sh", "dirname", "readlink", "cat"]) {
    const { stdout } = runScript(["sh", "-c", `command -v ${name}`])
    symlinkSync(stdout.trim(), join(folder, name))
  }
  return folder
}
