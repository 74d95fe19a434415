import { spawnSync } from "node:child_process"
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"

const REPOSITORY = join(import.meta.dirname, "..", "..", "..")
const DEMO_PACKAGES = join(REPOSITORY, "scripts", "demo-packages")

type Manifest = Record<"dependencies" | "devDependencies" | "optionalDependencies", Record<string, string>>
type Locked = { version: string; name?: string; integrity?: string; resolved?: string; optional?: boolean }
type Lock = { packages: Record<string, Locked & Partial<Manifest>> }

const readJson = <T>(...path: string[]): T => JSON.parse(readFileSync(join(...path), "utf8"))
const root = readJson<Manifest>(REPOSITORY, "package.json")
const demo = readJson<Manifest>(DEMO_PACKAGES, "package.json")
const lock = readJson<Lock>(DEMO_PACKAGES, "package-lock.json")
const rootLock = readJson<Lock>(REPOSITORY, "package-lock.json")

describe("the demo's own package set", () => {
  test(promised(["repo.A2", "install.E3"], "has the versions of the development packages"), () => {
    for (const [name, version] of Object.entries(demo.dependencies)) {
      expect(root.devDependencies[name], name).toBe(version)
    }
    const newest = Object.entries(root.optionalDependencies).filter(([name]) => name.startsWith("opencode-newest-"))
    expect(demo.optionalDependencies).toEqual(Object.fromEntries(newest))
  })

  test(promised("repo.A2", "is locked whole, by content and not by address"), () => {
    const { "": own, ...packages } = lock.packages
    expect(own?.dependencies).toEqual(demo.dependencies)
    expect(own?.optionalDependencies).toEqual(demo.optionalDependencies)
    for (const [name, locked] of Object.entries(packages)) {
      expect(locked.resolved, name).toBeUndefined()
      // npm omits the hash of packages missing in the locking machine's registry: builds for other platforms.
      if (!locked.optional) expect(locked.integrity, name).toMatch(/^sha512-/)
      for (const dependency of Object.keys({ ...locked.dependencies, ...locked.optionalDependencies })) {
        expect(Object.keys(packages), name).toContain(`node_modules/${dependency}`)
      }
    }
    for (const alias of Object.keys(demo.optionalDependencies)) {
      const version = demo.optionalDependencies[alias]?.split("@").at(-1)
      expect(packages[`node_modules/${alias}`]?.version, alias).toBe(version)
    }
  })

  test(promised("repo.A2", "brings the same contents as the development packages"), () => {
    for (const [name, { integrity }] of Object.entries(lock.packages)) {
      const known = rootLock.packages[name]?.integrity
      if (integrity && known) expect(integrity, name).toBe(known)
    }
    expect(lock.packages["node_modules/@copilotkit/aimock"]?.integrity).toBe(
      rootLock.packages["node_modules/@copilotkit/aimock"]?.integrity,
    )
  })
})

describe("finding the packages", () => {
  let folder = ""
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "baton-find-"))
  })
  afterEach(() => rmSync(folder, { recursive: true, force: true }))

  const find = () => spawnSync("node", [join(DEMO_PACKAGES, "find.mjs"), folder], { encoding: "utf8" })
  const alias = `opencode-newest-${process.platform}-${process.arch}`
  const complete = () => ({
    "node_modules/@copilotkit/aimock": { version: demo.dependencies["@copilotkit/aimock"] },
    "node_modules/@opencode-ai/plugin": { version: demo.dependencies["@opencode-ai/plugin"] },
    [`node_modules/${alias}`]: { version: demo.optionalDependencies[alias]?.split("@").at(-1) },
  })
  const install = (packages: Record<string, { version: string | undefined }>): void =>
    writeFileSync(join(folder, ".package-lock.json"), JSON.stringify({ packages }))

  test(promised("repo.A2", "a finished installation of the right versions is used as it is"), () => {
    install(complete())
    const { status, stdout } = find()
    expect(stdout.trim()).toBe(join(folder, alias, "bin", "opencode"))
    expect(status).toBe(0)
  })

  test(promised("repo.A2", "a half-finished, missing or outdated installation is not"), () => {
    mkdirSync(join(folder, alias))
    expect(find().status).toBe(1)
    install({ ...complete(), "node_modules/@copilotkit/aimock": { version: "0.0.1" } })
    expect(find().status).toBe(1)
    install({ [`node_modules/${alias}`]: complete()[`node_modules/${alias}`] ?? { version: undefined } })
    expect(find()).toMatchObject({ status: 1, stdout: "", stderr: "" })
  })
})
