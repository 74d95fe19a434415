import { execFileSync, spawn, spawnSync } from "node:child_process"
import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { createServer, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { dirname, join } from "node:path"
import { describe, expect, onTestFinished, test } from "vitest"
import { promised } from "../../requirements.ts"
import { withoutPackages } from "../../support/faults/fault-machine-table.ts"
import { runScript } from "../../support/files/small-checkout.ts"
import {
  BOTH_ENDS,
  bash,
  COMPACTING_PROMPT_TOKENS,
  casesOf,
  endsOf,
  type ModelReply,
  NEWEST,
  type OpenCodeBinary,
  openSharedTask,
  openTaskProject,
  REPOSITORY,
  runOpenCode,
  type SharedTask,
  TASK,
  type TaskProject,
  testsOnce,
} from "../../support/index.ts"
import { linkDependencies } from "../../support/opencode/isolated-opencode.ts"
import type { TestProject } from "../../support/opencode/test-project.ts"
import {
  afterDelivery,
  compact,
  compactionsOf,
  compactsAfterSteps,
  compactsOnDemand,
  lastTurn,
  recordsOf,
  runWell,
  turnsOf,
} from "../sessions.ts"

const folderOf = (name: string): string => join(REPOSITORY, "node_modules", name)

/** A registry's document about an installed package, with its one version. */
const describePackage = (name: string, url: string) => {
  const manifest = JSON.parse(readFileSync(join(folderOf(name), "package.json"), "utf8"))
  const { version } = manifest
  return {
    name,
    "dist-tags": { latest: version },
    versions: { [version]: { ...manifest, dist: { tarball: `${url}/tar/${encodeURIComponent(name)}` } } },
  }
}

const sendArchive = (name: string, response: ServerResponse): void => {
  const folder = folderOf(name)
  const tar = spawn("tar", ["-cf", "-", "-C", dirname(folder), folder.slice(dirname(folder).length + 1)])
  tar.on("error", (error) => response.destroy(error))
  tar.stdout.pipe(response)
}

/**
 * Starts an npm registry on loopback, until the test ends, with only the packages installed in this repository.
 *
 * @returns its URL, and the names of the packages that were fetched
 */
const startPackageRegistry = async (): Promise<{ url: string; fetched: readonly string[] }> => {
  const fetched: string[] = []
  const server = createServer((request, response) => {
    const path = decodeURIComponent(request.url ?? "").slice(1)
    const archived = path.startsWith("tar/") ? path.slice("tar/".length) : undefined
    const name = archived ?? path
    if (request.method !== "GET" || !existsSync(join(folderOf(name), "package.json"))) {
      response.writeHead(404).end("{}")
    } else if (archived === undefined) {
      response.setHeader("content-type", "application/json")
      response.end(JSON.stringify(describePackage(name, url)))
    } else {
      fetched.push(name)
      sendArchive(name, response)
    }
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url, fetched }
}

/** OpenCode uses ripgrep for searches and would download it if it is missing. */
const isRipgrepHere = spawnSync("rg", ["--version"]).status === 0

const install = ({ project }: TaskProject, ...args: string[]) =>
  runScript([join(REPOSITORY, "scripts", "install"), project.directory, ...args])

describe.each(endsOf(1))("OpenCode $version", (binary) => {
  test.skipIf(!isRipgrepHere)(
    promised("install.E4", "the agent's searches find the project, not the bundle"),
    async () => {
      const calls: ModelReply[] = [
        { tool: "grep", input: { pattern: "bundleClaim|enterCopy" } },
        { tool: "glob", input: { pattern: "**/*claim*.ts" } },
      ]
      const script = () => calls.shift() ?? { text: "Noted." }
      const task = await openTaskProject(binary, script, { bundle: "none" })
      const path = join(task.project.directory, ".opencode/baton/core/core.ts")
      calls.push({ tool: "read", input: { filePath: path } })
      task.project.write("src/claims.ts", "export const bundleClaim = 1\n")
      install(task)
      await runWell(task, "Where are claims made?")
      const [, afterGrep, afterGlob, afterRead] = turnsOf(task)
      for (const found of [afterGrep, afterGlob]) {
        expect(found).toContain("src/claims.ts")
        expect(found).not.toContain(".opencode/baton")
      }
      expect(afterRead, "whoever asks for a file by name gets it").toContain("export const enterCopy")
    },
  )
})

// The registry serves only packages that npm has installed here: the plugin package of the newest version.
test(
  promised("install.E8", "the first start in a project installs what the plugins need, and they serve that very run"),
  async () => {
    const registry = await startPackageRegistry()
    const task: TaskProject = await openTaskProject(
      NEWEST,
      afterDelivery(() => task, compactsAfterSteps(1)),
    )
    const folder = join(task.project.directory, ".opencode")
    // Leaves the files of `scripts/install`, as before OpenCode's first start.
    for (const name of ["node_modules", "package.json", "package-lock.json", ".gitignore"])
      rmSync(join(folder, name), { recursive: true })
    await runWell(task, task.message, { environment: { npm_config_registry: registry.url } })
    expect(registry.fetched).toContain("@opencode-ai/plugin")
    expect(lstatSync(join(folder, "node_modules")).isSymbolicLink()).toBe(false)
    expect(turnsOf(task)[0]).toContain(TASK.specification)
    expect(await recordsOf(task)).toEqual(["Compaction 1: A summary."])
  },
)

describe.each(BOTH_ENDS)("OpenCode $version", (binary) => {
  test(
    promised("install.E8", "an installed bundle brings zod along: a record is made without any other package"),
    async () => {
      const task: TaskProject = await openTaskProject(
        binary,
        afterDelivery(() => task, compactsAfterSteps(1)),
        { bundle: "none" },
      )
      expect(install(task)).toMatchObject({ exitCode: 0 })
      withoutPackages.arrange(task)
      await runWell(task, task.message)
      expect(turnsOf(task)[0]).toContain(TASK.specification)
      expect(await recordsOf(task)).toEqual(["Compaction 1: A summary."])
    },
  )
})

/** Start folder of OpenCode, and the folder with the bundle. */
type Place = { directory: string; root: string }

const folderBelow = ({ directory }: Pick<TestProject, "directory">): Place => {
  const below = join(directory, "packages", "parser")
  mkdirSync(below, { recursive: true })
  return { directory: below, root: directory }
}

/** Adds a worktree to the project's repository, with the committed bundle. */
const linkedWorktree = ({ directory }: TestProject, { version }: OpenCodeBinary): Place => {
  const tree = join(dirname(directory), "linked")
  execFileSync("git", ["-C", directory, "worktree", "add", "-q", "-b", "linked", tree], { stdio: "pipe" })
  linkDependencies(join(tree, ".opencode"), version, join(REPOSITORY, "node_modules"))
  return { directory: tree, root: tree }
}

const PLACES: [what: string, folder: string, find: (project: TestProject, binary: OpenCodeBinary) => Place][] = [
  ["a folder below the project, in a path with spaces and other letters", "Größe und 文 'x'/der Parser", folderBelow],
  ["a linked worktree of git", "project", linkedWorktree],
]

describe.each(BOTH_ENDS)("OpenCode $version", (binary) => {
  const once = testsOnce(binary)
  test.each(casesOf(binary, PLACES))(
    promised(["start.A1", "compaction.C2", "compaction.C7"], "in %s the task is known and a compaction is recorded"),
    async (_what, folder, find) => {
      let step = 0
      const task: TaskProject = await openTaskProject(
        binary,
        afterDelivery(
          () => task,
          ({ kind }) => {
            if (kind === "compaction") return { text: "A summary." }
            if (step++ > 0) return { text: "Finished." }
            return bash(`prog log ${task.taskID} "By the agent"`, COMPACTING_PROMPT_TOKENS)
          },
        ),
        { folder },
      )
      const { directory, root } = find(task.project, binary)
      writeFileSync(join(root, "prompts", "handoff.md"), "<!-- baton:handoff -->\nThe wording of this place.\n")
      const environment = { ...task.project.environment, PWD: directory }
      const project = { ...task.project, directory, environment }
      const result = await runOpenCode(task.message, { binary, project })
      expect(result.exitCode, result.stderr).toBe(0)
      expect(turnsOf(task)[0]).toContain(TASK.specification)
      expect(compactionsOf(task)[0]).toContain("The wording of this place.")
      expect(lastTurn(task)).toContain("(compaction 1 of this session)")
      expect(await recordsOf(task)).toEqual(["By the agent", "Compaction 1: A summary."])
      expect(readdirSync(join(root, ".opencode", "state", "tasks"))).toHaveLength(1)
      if (directory !== root) expect(readdirSync(directory)).toEqual([])
    },
  )

  once(
    promised(["compaction.C2", "compaction.C7"], "a user's own way of compacting stays, and is recorded"),
    async () => {
      const config = {
        compaction: { auto: false, prune: true },
        agent: { compaction: { prompt: "You are the user's own summariser." } },
      }
      const task = await openSharedTask(binary, compactsOnDemand, { config })
      const id = await task.say(`${task.message}\nCOMPACT-NOW`)
      expect(lastTurn(task)).toContain(TASK.specification)
      expect(compactionsOf(task), "auto is off").toEqual([])
      await compact(task, id)
      const [request] = task.model.received("compaction")
      expect(request?.system).toContain("You are the user's own summariser.")
      expect(request?.conversation).toContain(`## Task ${task.taskID}`)
      expect(await task.records(1)).toEqual(["Compaction 1: Summary 1."])
      await task.say("What is next?", id)
      expect(lastTurn(task)).toContain("(compaction 1 of this session)")
    },
  )

  once(
    promised("ledger.D4", "the agent finds prog on its PATH, without Bun, and writes to the observer's ledger"),
    async () => {
      let step = 0
      const task: SharedTask = await openSharedTask(binary, () => {
        if (step++ > 0) return { text: "Finished." }
        return bash(`command -v bun || prog show ${task.taskID} && prog log ${task.taskID} 'by the agent'`)
      })
      await task.say("There is no task line here.")
      expect(lastTurn(task)).toContain(TASK.title)
      expect(await task.records(1)).toEqual(["by the agent"])
    },
  )
})
