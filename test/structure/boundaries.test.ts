import { existsSync, readFileSync } from "node:fs"
import { dirname, join, relative } from "node:path"
import { describe, expect, test } from "vitest"
import { promised } from "../requirements.ts"
import { sourceFiles } from "../support/files/source-files.ts"
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
const FEATURES = ["compaction", "handoff", "live-state", "pass-over", "learning"]
/** Each imports those before it. */
const SHARED = ["host", "task", "ledger", "core"]

const roomOf = (path: string): string => path.slice(BATON.length).split("/")[0] ?? ""

describe("boundaries", () => {
  test(
    promised(
      "repo.A1",
      "a plugin file is one export of at most 15 lines that imports the core and one feature's hooks",
    ),
    () => {
      const plugins = sources.filter(({ path }) => path.startsWith(".opencode/plugins/"))
      expect(plugins.length).toBeGreaterThan(0)
      for (const { path, text, imports } of plugins) {
        expect(text.split("\n").length, path).toBeLessThanOrEqual(16)
        expect(text.match(/^export /gm), path).toHaveLength(1)
        const own = imports.filter((target) => target.startsWith(BATON))
        expect(
          own.every((target) => /\/(?:hooks|core\/core)\.ts$/.test(target)),
          `${path}: ${own.join(", ")}`,
        ).toBe(true)
      }
    },
  )

  test(
    promised("repo.A1", "a feature imports host, task, ledger, core and its own files, never another feature"),
    () => {
      const offenders = sources.flatMap(({ path, imports }) => {
        const room = path.startsWith(BATON) ? roomOf(path) : ""
        if (!FEATURES.includes(room)) return []
        const allowed = [...SHARED, room]
        return imports
          .filter((target) => target.startsWith(BATON) && !allowed.includes(roomOf(target)))
          .map((target) => `${path} → ${target}`)
      })
      expect(offenders).toEqual([])
    },
  )

  test(promised("repo.A1", "host, task, ledger and core import one another in this order, and no feature"), () => {
    const offenders = sources.flatMap(({ path, imports }) => {
      const at = path.startsWith(BATON) ? SHARED.indexOf(roomOf(path)) : -1
      if (at < 0) return []
      const allowed = SHARED.slice(0, at + 1)
      return imports
        .filter((target) => target.startsWith(BATON) && !allowed.includes(roomOf(target)))
        .map((target) => `${path} → ${target}`)
    })
    expect(offenders).toEqual([])
  })

  test(promised("repo.A1", "nothing a plugin loads imports zod or the plugin package when it loads"), () => {
    const eager = sources.filter(({ text }) =>
      /^(?:import|export)\s+(?!type\b)[^"]*from\s+"(?:zod|@opencode-ai\/[^"]*)"/m.test(text),
    )
    expect(eager.map(({ path }) => path)).toEqual([])
  })

  test(promised("repo.A1", "Bun's own modules stay in host/process and ledger/embedded"), () => {
    const offenders = sources.filter(
      ({ path, text }) => /from "bun:|\bBun\.\w/.test(text) && !/host\/process|ledger\/embedded\//.test(path),
    )
    expect(offenders.map(({ path }) => path)).toEqual([])
  })

  test(promised("repo.A1", "no file is longer than 400 lines, and every room of the design is there"), () => {
    const long = sources.filter(({ text }) => text.split("\n").length > 401)
    expect(long.map(({ path }) => path)).toEqual([])
    for (const room of ["plugins", "baton/host", "baton/task", "baton/ledger", "baton/compaction", "baton/bin"]) {
      expect(existsSync(join(REPOSITORY, ".opencode", room)), room).toBe(true)
    }
    for (const file of [
      "README.md",
      "AGENTS.md",
      "CHANGELOG.md",
      "LICENSE",
      "docs/adr",
      "prompts/handoff.md",
      ".ci/run",
    ]) {
      expect(existsSync(join(REPOSITORY, file)), file).toBe(true)
    }
  })

  test("no docblock begins with a relative clause, and no comment speaks of nobody or whoever", () => {
    const offenders = sources.flatMap(({ path, text }) =>
      text
        .split("\n")
        .filter((line) =>
          /\/\*\* (?:What|Who|Whether|Which|Where|When|How) |(?:\/\/|\*) .*\b(?:nobody|somebody|whoever|whatever)\b/.test(
            line,
          ),
        )
        .map((line) => `${path}: ${line.trim()}`),
    )
    expect(offenders).toEqual([])
  })

  test("one global is shared between copies of the bundle: the claim", () => {
    const holders = sources.filter(({ text }) => text.includes("Symbol.for(")).map(({ path }) => path)
    expect(holders).toEqual([`${BATON}core/claim.ts`])
  })

  test(promised("repo.A1", "every package version is pinned exactly"), () => {
    const manifest = JSON.parse(readFileSync(join(REPOSITORY, "package.json"), "utf8"))
    const versions = { ...manifest.dependencies, ...manifest.devDependencies, ...manifest.optionalDependencies }
    const loose = Object.entries<string>(versions).filter(
      ([, version]) => !/^(?:npm:[\w@/-]+@)?\d+\.\d+\.\d+$/.test(version),
    )
    expect(loose).toEqual([])
  })
})
