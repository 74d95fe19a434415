import { chmodSync, chownSync, mkdirSync, symlinkSync } from "node:fs"
import { join } from "node:path"
import { beforeEach, describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { createPatient, type Patient } from "../../support/files/doctor-patient.ts"
import { snapshotTree } from "../../support/files/folder-tree.ts"
import { createSmallCheckout, type SmallCheckout } from "../../support/files/small-checkout.ts"

const MANIFEST = ".opencode/baton/.manifest"
const GIT = ".opencode/baton/bin/git"
const THING = ".opencode/baton/host/thing.ts"
const PLUGIN = ".opencode/plugins/thing.ts"

describe("a repository that brings what Baton would act on", () => {
  let checkout: SmallCheckout

  beforeEach(() => {
    checkout = createSmallCheckout()
  })

  const PARTS: [string, string, string][] = [
    ["a program in the bundle's folder", GIT, "#!/bin/sh\n"],
    ["a changed file of the bundle", THING, "export const createThing = () => process.exit(1)\n"],
    ["an empty manifest", MANIFEST, "# Baton 1.0.0\n"],
  ]
  test.each(PARTS)(promised("install.G1", "%s is refused, and nothing is changed"), (_, path, text) => {
    checkout.write(path, text)
    const before = snapshotTree(checkout.project)
    const { exitCode, stderr } = checkout.install()
    expect({ exitCode, isNamed: stderr.includes("--take-over") }).toEqual({ exitCode: 1, isNamed: true })
    expect(stderr).toContain(path.split("/").slice(0, 2).join("/"))
    expect(snapshotTree(checkout.project)).toEqual(before)
  })

  test(
    promised("install.G1", "with --take-over a repository's bundle is replaced, and its own settings and records stay"),
    () => {
      const own = [".opencode/baton.json", ".opencode/state/outbox/1.json"]
      for (const [, path, text] of PARTS) checkout.write(path, text)
      for (const path of own) checkout.write(path, "{}\n")
      const { exitCode, stdout } = checkout.install("--take-over")
      expect({ exitCode, hasGit: checkout.has(GIT) }).toEqual({ exitCode: 0, hasGit: false })
      expect(checkout.read(THING)).toBe("export const createThing = () => ({})\n")
      expect(stdout).toMatch(/Files: \d+ added, 1 updated, 1 removed/)
      for (const path of own) expect(checkout.has(path)).toBe(true)
      expect(checkout.install().stdout).toContain("Nothing to do")
    },
  )

  test(promised("install.G1", "settings and an empty folder are no reason to refuse an installation"), () => {
    checkout.write(".opencode/baton.json", '{"learning":{"enabled":false}}\n')
    mkdirSync(join(checkout.project, ".opencode/baton"), { recursive: true })
    expect(checkout.install().exitCode).toBe(0)
  })

  test(promised("install.G1", "a state is left to Baton's own check"), () => {
    checkout.write(".opencode/state/outbox/1.json", "{}\n")
    expect(checkout.install().exitCode).toBe(0)
    expect(checkout.read(".opencode/state/outbox/1.json")).toBe("{}\n")
  })

  test(promised("install.G1", "what is put beside the installed files later is named at the next run"), () => {
    checkout.install()
    checkout.write(GIT, "#!/bin/sh\n")
    expect(checkout.install().stdout).toMatch(/keep +\.opencode\/baton\/bin\/git: it is not Baton's/)
    expect(checkout.install("--take-over").stdout).toMatch(/remove +\.opencode\/baton\/bin\/git/)
    expect(checkout.has(GIT)).toBe(false)
  })
})

describe("doctor", () => {
  let patient: Patient

  beforeEach(() => {
    patient = createPatient()
  })

  const RAN = "ran.txt"
  const PROOF = `import { writeFileSync } from "node:fs"\nwriteFileSync("${RAN}", "")\n`
  const proof = () => PROOF.replace(RAN, join(patient.root, RAN))
  /** Runs doctor as a person does. @returns the broken findings */
  const broken = (id: string) => {
    const { exitCode, report } = patient.examine()
    expect(exitCode).toBe(1)
    expect(snapshotTree(patient.root)).not.toHaveProperty(RAN)
    return report.findings.filter((one) => one.status === "broken" && one.id === id).map(({ message }) => message)
  }

  test(promised("install.G2", "doctor calls a file in the bundle's folder that is not on the manifest broken"), () => {
    patient.write(GIT, "#!/bin/sh\n")
    expect(broken("files")).toEqual([expect.stringContaining(`did not put there: ${GIT}`)])
    expect(broken("plugins")).toEqual([expect.stringContaining(GIT)])
  })

  test.each([PLUGIN, THING])(
    promised("install.G2", "doctor calls %s with other contents broken and imports nothing"),
    (path) => {
      patient.write(path, `${proof()}${patient.read(path)}`)
      expect(broken("files")).toEqual([expect.stringContaining(`not as they were installed: ${path}`)])
      expect(broken("plugins")).toEqual([expect.stringMatching(/not tried.*is not as the installer put it there/)])
    },
  )

  test(
    promised("install.G2", "doctor imports no plugin that is not on the manifest, and no link in place of one"),
    () => {
      patient.write(".opencode/plugins/other.ts", `${proof()}export { createThing } from "../baton/host/thing.ts"\n`)
      expect(broken("plugins")).toEqual([expect.stringContaining(".opencode/plugins/other.ts is not as")])
      patient.delete(".opencode/plugins/other.ts")
      patient.write("elsewhere.ts", patient.read(PLUGIN))
      patient.delete(PLUGIN)
      symlinkSync("../../elsewhere.ts", join(patient.project, PLUGIN))
      expect(broken("files")).toEqual([expect.stringContaining(PLUGIN)])
    },
  )

  test(promised("install.G2", "doctor imports nothing of a folder without a manifest"), () => {
    patient.write(PLUGIN, `${proof()}${patient.read(PLUGIN)}`)
    patient.delete(MANIFEST)
    expect(broken("plugins")).toEqual([expect.stringContaining("no manifest says what they are")])
  })

  const isRoot = process.getuid?.() === 0
  test.runIf(isRoot).each([PLUGIN, THING, ".opencode/baton", ".opencode"])(
    promised("install.G2", "doctor imports nothing when %s belongs to another account"),
    (path) => {
      chmodSync(patient.root, 0o755)
      chownSync(join(patient.project, path), 65534, 65534)
      expect(broken("plugins")).toEqual([expect.stringContaining(`${path} belongs to another account`)])
    },
  )
})
