import { readFileSync } from "node:fs"
import { dirname, join, relative } from "node:path"
import { describe, expect, test } from "vitest"
import { promised } from "../requirements.ts"
import { circlesAmong, sourceFiles } from "../support/files/source-files.ts"
import { REPOSITORY } from "../support/opencode/opencode-binary.ts"

type Source = { path: string; text: string; imports: string[] }

const IMPORT = /(?:import|export)\s[^"']*?from\s+"([^"]+)"|import\("([^"]+)"\)/g

const sources: Source[] = [".opencode/plugins", ".opencode/baton"]
  .flatMap((folder) => sourceFiles(folder, ".ts"))
  .map((path) => {
    const text = readFileSync(join(REPOSITORY, path), "utf8")
    const imports = [...text.matchAll(IMPORT)].map(([, fixed, lazy]) => {
      const target = fixed ?? lazy ?? ""
      return target.startsWith(".") ? relative(REPOSITORY, join(REPOSITORY, dirname(path), target)) : target
    })
    return { path, text, imports }
  })

const BATON = ".opencode/baton/"
const FEATURES = ["compaction", "handoff", "live-state", "pass-over", "learning", "write-guard"]
/** Each imports those before it. */
const SHARED = ["host", "task", "ledger", "core"]

const roomOf = (path: string): string => path.slice(BATON.length).split("/")[0] ?? ""

/** The bundle's imports of rooms that the importing file's room may not import; undefined: it may import any. */
const importsBeyond = (allowed: (room: string) => readonly string[] | undefined): string[] =>
  sources.flatMap(({ path, imports }) => {
    const rooms = path.startsWith(BATON) ? allowed(roomOf(path)) : undefined
    return imports
      .filter((target) => target.startsWith(BATON) && rooms?.includes(roomOf(target)) === false)
      .map((target) => `${path} → ${target}`)
  })

/** The files of the bundle that are so. */
const pathsWhere = (isSo: (source: Source) => boolean): string[] => sources.filter(isSo).map(({ path }) => path)

describe("boundaries", () => {
  test(
    promised("repo.A1", "a plugin file is one function and its entry, at most 15 lines, and imports core and hooks"),
    () => {
      const plugins = sources.filter(({ path }) => path.startsWith(".opencode/plugins/"))
      expect(plugins.length).toBeGreaterThan(0)
      for (const { path, text, imports } of plugins) {
        expect(text.split("\n").length, path).toBeLessThanOrEqual(16)
        expect(text.match(/^export const/gm), path).toHaveLength(1)
        expect(text.match(/^export (?!const)/gm), path).toEqual(["export "])
        expect(text, path).toMatch(/^export default entryOf\(/m)
        const others = imports.filter(
          (target) => target.startsWith(BATON) && !/\/(?:hooks|core\/(?:core|entry))\.ts$/.test(target),
        )
        expect(others, path).toEqual([])
      }
    },
  )

  test(promised("repo.A1", "host, task, ledger, core and features import in this order, and no other feature"), () => {
    expect(importsBeyond((room) => (FEATURES.includes(room) ? [...SHARED, room] : undefined))).toEqual([])
    const allowed = (room: string) => (SHARED.includes(room) ? SHARED.slice(0, SHARED.indexOf(room) + 1) : undefined)
    expect(importsBeyond(allowed)).toEqual([])
  })

  test(promised("repo.A1", "no file imports one that imports it, types and imports at first use counted"), () => {
    expect(circlesAmong(sources.map(({ path }) => path))).toEqual([])
  })

  test(promised("work.B6", "nothing of baton work is loaded by a plugin, and no other room imports it"), () => {
    const others = importsBeyond((room) => (room === "work" ? undefined : [...SHARED, ...FEATURES, "doctor"]))
    expect(others).toEqual([])
    expect(sources.some(({ path }) => path.startsWith(`${BATON}work/`))).toBe(true)
  })

  test(promised("repo.A1", "nothing a plugin loads imports zod or the plugin package when it loads"), () => {
    const eager = /^(?:import|export)\s+(?!type\b)[^"]*from\s+"(?:zod|@opencode-ai\/[^"]*)"/m
    expect(pathsWhere(({ text }) => eager.test(text))).toEqual([])
  })

  test(promised("repo.A1", "Bun's own modules stay in host/process, host/sqlite and ledger/embedded"), () => {
    const users = pathsWhere(({ text }) => /(?:from |import\()"bun:|\bBun\.\w/.test(text))
    expect(users.filter((path) => !/host\/(?:process|sqlite)|ledger\/embedded\//.test(path))).toEqual([])
  })

  test(promised("repo.A1", "no file is longer than 400 lines"), () => {
    expect(pathsWhere(({ text }) => text.split("\n").length > 401)).toEqual([])
  })

  test("no docblock begins with a relative clause, and no comment speaks of nobody or whoever", () => {
    const bad =
      /\/\*\* (?:What|Who|Whether|Which|Where|When|How) |(?:\/\/|\*) .*\b(?:nobody|somebody|whoever|whatever)\b/
    const lines = sources.flatMap(({ path, text }) => text.split("\n").map((line) => `${path}: ${line.trim()}`))
    expect(lines.filter((line) => bad.test(line))).toEqual([])
  })

  test("one file has what is shared between copies of the bundle and between instances of a module", () => {
    expect(pathsWhere(({ text }) => text.includes("Symbol.for("))).toEqual([`${BATON}host/shared.ts`])
  })

  test(promised("v2.A1", "core starts the adapter to OpenCode 2, and no other file outside it imports it"), () => {
    const adapter = `${BATON}host/opencode-2/`
    const users = sources.filter(
      ({ path, imports }) => !path.startsWith(adapter) && imports.some((target) => target.startsWith(adapter)),
    )
    expect(users.map(({ path }) => path)).toEqual([`${BATON}core/entry.ts`])
    const asking = pathsWhere(({ path, text }) => !path.startsWith(`${BATON}host/`) && /isOpenCode2|isLine2/.test(text))
    expect(asking).toEqual([`${BATON}core/entry.ts`])
  })

  test(promised("repo.A1", "every package version is pinned exactly"), () => {
    const manifests = ["package.json", "test/tools/package.json"].map((path) =>
      JSON.parse(readFileSync(join(REPOSITORY, path), "utf8")),
    )
    const pinned = /^(?:npm:[\w@/-]+@)?\d+\.\d+\.\d+$/
    for (const { devDependencies, optionalDependencies } of manifests)
      for (const [name, version] of Object.entries({ ...devDependencies, ...optionalDependencies }))
        expect(version, name).toMatch(pinned)
  })

  /** The registry that the lock files were made with has no OpenCode for these machines; SECURITY.md says so. */
  const withoutHash = (version: string) =>
    ["darwin-arm64", "darwin-x64", "linux-arm64"].map((machine) => `node_modules/opencode-${version}-${machine}`)
  test.each([
    ["", ["newest", "oldest"].flatMap(withoutHash)],
    ["scripts/demo-packages/", withoutHash("newest")],
  ])(
    promised("install.G3", "every package of %spackage-lock.json has its hash, and no install script runs"),
    (folder, excepted) => {
      const lock = JSON.parse(readFileSync(join(REPOSITORY, folder, "package-lock.json"), "utf8"))
      const all: [string, { integrity?: string; link?: true }][] = Object.entries(lock.packages)
      // The rest are this repository's own folders, and links to them.
      const packages = all.filter(([path, { link }]) => path.startsWith("node_modules/") && !link)
      const bare = packages.filter(([, { integrity = "" }]) => !integrity.startsWith("sha512-"))
      expect(packages.length).toBeGreaterThan(30)
      expect(bare.map(([path]) => path)).toEqual(excepted)
      expect(readFileSync(join(REPOSITORY, folder, ".npmrc"), "utf8")).toMatch(/^ignore-scripts=true$/m)
    },
  )
})
