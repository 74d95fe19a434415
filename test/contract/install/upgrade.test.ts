import { createHash } from "node:crypto"
import { appendFileSync, chmodSync, existsSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { beforeEach, describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { snapshotTree } from "../../support/files/folder-tree.ts"
import { createSmallCheckout, runWithSignal, type SmallCheckout } from "../../support/files/small-checkout.ts"

const MANIFEST = ".opencode/baton/.manifest"

let checkout: SmallCheckout

beforeEach(() => {
  checkout = createSmallCheckout()
})

describe("upgrade", () => {
  test(promised("install.E1", "upgrade replaces what is unchanged, adds what is new, removes what is gone"), () => {
    checkout.ship(".opencode/baton/old/gone.ts", "export {}\n")
    checkout.ship("prompts/extra.md", "extra\n")
    checkout.install()
    checkout.unship(".opencode/baton/old/gone.ts")
    checkout.unship("prompts/extra.md")
    checkout.write("prompts/extra.md", "my extra\n")
    checkout.ship("prompts/handoff.md", "Newer.\n")
    checkout.ship(".opencode/plugins/second.ts", "export const Second = async () => ({})\n")
    const { stdout } = checkout.install()
    for (const line of [
      /update +prompts\/handoff\.md/,
      /add +\.opencode\/plugins\/second\.ts/,
      /remove +\.opencode\/baton\/old\/gone\.ts/,
      /keep +prompts\/extra\.md: you changed it; it is yours now/,
    ])
      expect(stdout).toMatch(line)
    expect(checkout.read("prompts/handoff.md")).toBe("Newer.\n")
    expect(checkout.has(".opencode/baton/old")).toBe(false)
    checkout.install("--uninstall")
    expect(Object.keys(snapshotTree(checkout.project))).toEqual(["prompts", "prompts/extra.md"])
  })

  test(promised("install.E1", "upgrade puts back a file that was deleted and an executable bit that was lost"), () => {
    checkout.install()
    const installed = snapshotTree(checkout.project)
    rmSync(join(checkout.project, "prompts/handoff.md"))
    chmodSync(join(checkout.project, ".opencode/baton/bin/tool"), 0o644)
    checkout.install()
    expect(snapshotTree(checkout.project)).toEqual(installed)
  })
})

describe("a new version beside the user's file", () => {
  const PROMPT = "prompts/handoff.md"
  const BESIDE = `${PROMPT}.baton-new`
  const shipNewer = (text: string) => checkout.ship(PROMPT, `<!-- baton:handoff -->\n${text}\n`)

  beforeEach(() => {
    checkout.install()
    checkout.write(PROMPT, "mine\n")
    shipNewer("second")
    checkout.install()
  })

  test(
    promised("install.E1", "a new version that was merged and deleted comes back with the next version alone"),
    () => {
      checkout.write(PROMPT, "mine\nsecond\n")
      rmSync(join(checkout.project, BESIDE))
      const { exitCode, stdout } = checkout.install("--update")
      expect({ exitCode, isBack: checkout.has(BESIDE) }).toEqual({ exitCode: 0, isBack: false })
      expect(stdout).toMatch(/keep +prompts\/handoff\.md: you changed it\nNothing to do/)
      checkout.install()
      expect(checkout.has(BESIDE)).toBe(false)
      shipNewer("third")
      expect(checkout.install().stdout).toContain("the new version is beside it as handoff.md.baton-new")
      expect(checkout.read(BESIDE)).toContain("third")
    },
  )

  test(promised("install.E1", "a new version that a killed run did not write yet is written by the next run"), () => {
    shipNewer("third")
    rmSync(join(checkout.project, BESIDE))
    const program = join(checkout.source, "scripts/lib/install.mjs")
    // The first file that it writes is the manifest.
    const killed = runWithSignal("writeFileSync 2 SIGKILL", [program, checkout.project])
    expect({ exitCode: killed.exitCode, isThere: checkout.has(BESIDE) }).toEqual({ exitCode: null, isThere: false })
    checkout.install()
    expect(checkout.read(BESIDE)).toContain("third")
    checkout.install("--uninstall")
    expect(Object.keys(snapshotTree(checkout.project))).toEqual(["prompts", PROMPT])
  })
})

describe("an interrupted run", () => {
  /** Runs the program behind scripts/install. */
  const signalAt = (at: string, ...args: string[]) =>
    runWithSignal(at, [join(checkout.source, "scripts/lib/install.mjs"), checkout.project, ...args])
  const killAt = (at: string, ...args: string[]): void => {
    expect(signalAt(`${at} SIGKILL`, ...args).exitCode, at).toBe(null)
  }
  const expectWhole = ({ except }: { except?: string } = {}): void => {
    const expected = createSmallCheckout()
    const treeOf = ({ project }: SmallCheckout) =>
      Object.entries(snapshotTree(project)).filter(([path]) => path !== except)
    expected.install()
    expect(treeOf(checkout)).toEqual(treeOf(expected))
  }

  // Writes in order: the manifest, eight files, and the manifest again.
  const WRITES = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map((n) => `writeFileSync ${n}`)
  test.each([...WRITES, "renameSync 2", "renameSync 10"])(
    promised("install.E1", "an interrupted run is finished later (%s)"),
    (at) => {
      killAt(at)
      expect(checkout.install().exitCode).toBe(0)
      // Folders that were there before anything was on record are not listed.
      const isFirst = at === WRITES[0]
      expectWhole(isFirst ? { except: MANIFEST } : {})
      checkout.install("--uninstall")
      if (!isFirst) expect(snapshotTree(checkout.project)).toEqual({})
    },
  )

  test.each([3, 10])(
    promised("install.E1", "an interrupted run is undone by --uninstall (killed at write %i)"),
    (count) => {
      killAt(`writeFileSync ${count}`)
      checkout.install("--uninstall")
      expect(snapshotTree(checkout.project)).toEqual({})
    },
  )

  const REMOVALS = ["rmSync 1", "rmSync 5", "rmSync 9", "rmdirSync 1", "rmdirSync 4"]
  test.each(REMOVALS)(
    promised("install.E1", "an interrupted run of --uninstall is finished, too (killed at %s)"),
    (at) => {
      checkout.install()
      killAt(at, "--uninstall")
      checkout.install("--uninstall")
      expect(snapshotTree(checkout.project)).toEqual({})
    },
  )

  const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"]
  test.each(SIGNALS)(
    promised("install.E1", "an interrupted run says at %s that it stopped, and is finished later"),
    (signal) => {
      const stderr = "\ninstall: stopped. Run the same command again to finish.\n"
      expect(signalAt(`renameSync 4 ${signal}`)).toMatchObject({ exitCode: 130, stderr })
      expect(checkout.has("prompts/worker.md")).toBe(false)
      checkout.install()
      expectWhole()
    },
  )

  test(promised("install.E1", "an interrupted run does not turn our own newer files into the user's"), () => {
    checkout.install()
    const shipAll = (text: string) => {
      checkout.ship(".opencode/baton/host/thing.ts", `export const createThing = () => ({ ${text}: 1 })\n`)
      checkout.ship("prompts/handoff.md", `${text}\n`)
    }
    shipAll("second")
    killAt("writeFileSync 3")
    shipAll("third")
    expect(checkout.install().stdout).not.toContain("keep")
    expect(checkout.read("prompts/handoff.md")).toBe("third\n")
    expect(checkout.read(".opencode/baton/host/thing.ts")).toContain("third")
  })
})

describe("the policy of passes", () => {
  const POLICY = ".opencode/pass-over.json"
  const OWN = '{ "defaults": { "auto_return": true } }\n'

  beforeEach(() => checkout.ship(POLICY, "{}\n"))

  test.each(["that is changed", "that was there before"])(
    promised("install.F1", "a policy of passes %s stays as it is, also at uninstall"),
    (which) => {
      if (which === "that is changed") checkout.install()
      checkout.write(POLICY, OWN)
      const kept = /keep +\.opencode\/pass-over\.json: (?:you changed it|it was yours before)\n/
      expect(checkout.install().stdout).toMatch(kept)
      checkout.ship(POLICY, "{ }\n")
      checkout.install()
      expect([checkout.read(POLICY), checkout.has(`${POLICY}.baton-new`)]).toEqual([OWN, false])
      checkout.install("--uninstall")
      expect(Object.keys(snapshotTree(checkout.project))).toEqual([".opencode", POLICY])
    },
  )

  test(promised("install.F1", "a policy of passes that was deleted stays away, whatever else is missing"), () => {
    checkout.install()
    rmSync(join(checkout.project, POLICY))
    checkout.install()
    rmSync(join(checkout.project, ".opencode/plugins/thing.ts"))
    checkout.install()
    expect([checkout.has(".opencode/plugins/thing.ts"), checkout.has(POLICY)]).toEqual([true, false])
  })
})

describe("uninstall", () => {
  test.each([
    ["run-time records", ".opencode/state", "outbox/1.json"],
    ["the audit of passes", ".opencode/pass-over-logs", "2026-01/session-ses_1-passes.jsonl"],
  ])(promised("install.E1", "uninstall keeps %s, unless --purge is given"), (_, folder, record) => {
    checkout.install()
    checkout.write(`${folder}/.gitignore`, "*\n")
    checkout.write(`${folder}/${record}`, "{}\n")
    expect(checkout.install("--uninstall").stdout).toMatch(new RegExp(`keep +${folder}.*--purge`))
    expect(checkout.has(`${folder}/${record}`)).toBe(true)
    expect(checkout.install("--uninstall", "--purge").stdout).toMatch(new RegExp(`remove +${folder}\n`))
    expect(snapshotTree(checkout.project)).toEqual({})
  })

  test(
    promised("install.E1", "uninstall names what is the user's and stays, and removes empty run-time folders"),
    () => {
      checkout.install()
      checkout.write(".opencode/baton.json", "{}")
      checkout.write(".opencode/pass-over.json", "{}")
      // Run-time folders that hold no record go without --purge.
      for (const folder of ["state", "pass-over-logs"]) checkout.write(`.opencode/${folder}/.gitignore`, "*\n")
      const { stdout } = checkout.install("--uninstall")
      const own = [".opencode/baton.json", ".opencode/pass-over.json"]
      for (const path of own) expect(stdout).toMatch(new RegExp(`keep +${path}: it is yours`))
      expect(Object.keys(snapshotTree(checkout.project)).slice(1)).toEqual(own)
    },
  )

  test(promised("install.E1", "uninstall reaches nothing outside, whatever the manifest says"), () => {
    checkout.install()
    writeFileSync(join(checkout.root, "outside.md"), "mine\n")
    checkout.write("src/own.ts", "mine\n")
    const sum = createHash("sha256").update("mine\n").digest("hex")
    const paths = ["../outside.md", "prompts/../../outside.md", `${checkout.root}/outside.md`, "src/own.ts"]
    const lines = paths.map((path) => `${sum}\t5\t${path}\n`)
    appendFileSync(join(checkout.project, MANIFEST), lines.join(""))
    checkout.install("--uninstall")
    expect(existsSync(join(checkout.root, "outside.md"))).toBe(true)
    expect(checkout.has("src/own.ts")).toBe(true)
  })
})
