import { readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import type { Held } from "../../fixtures/held-probe.ts"
import { promised } from "../../requirements.ts"
import {
  BRIEF,
  deadline,
  eventually,
  type ModelReply,
  NEWEST_OR_ALL,
  newestWords,
  openTaskProject,
  type Script,
  startServer,
  type TaskProject,
  type TestServer,
} from "../../support/index.ts"
import { passOver, returns } from "../../support/model/pass-over-script.ts"
import type { TestProject } from "../../support/opencode/test-project.ts"
import { compact, createSession, handOver, turnsOf } from "../sessions.ts"

/** First line of each file: its names shadow the globals of the module. In other processes they are the plain globals. */
const prelude = (file: string): string =>
  `const { Map, Set, setTimeout, setInterval, clearTimeout, clearInterval } = globalThis["baton.held"]?.(${JSON.stringify(file)}) ?? globalThis\n`

/**
 * Rewrites the project's copy of the bundle so that its maps, sets and timers are tracked, and loads it by a probe.
 *
 * @returns requests to an OpenCode in that project about the objects it holds
 */
const watchHeld = (project: TestProject) => {
  const { directory, home } = project
  const openCode = join(directory, ".opencode")
  const baton = join(openCode, "baton")
  for (const file of readdirSync(baton, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts")))
    writeFileSync(join(baton, file), `${prelude(file)}${readFileSync(join(baton, file), "utf8")}`)
  const plugins = join(openCode, "held-plugins")
  renameSync(join(openCode, "plugins"), plugins)
  const probe = JSON.stringify(join(import.meta.dirname, "../../fixtures/held-probe.ts"))
  // The probe is loaded before the plugin.
  for (const name of readdirSync(plugins))
    project.write(
      `.opencode/plugins/${name}`,
      `import { watched } from ${probe}\nimport * as plugin from "../held-plugins/${name}"\n` +
        "export const Watched = watched(Object.values(plugin)[0])\n",
    )
  const address = join(home, "held-address")
  const ask = async (path: string): Promise<Held> =>
    (await (await fetch(new URL(path, readFileSync(address, "utf8")))).json()) as Held
  return {
    environment: { HELD_ADDRESS: address },
    look: () => ask("/"),
    dispose: () => ask("/dispose"),
  }
}

/** Two rounds of a dozen model calls each, and forced garbage collections. */
const DEADLINE_MS = deadline(300_000)
/** Records are still created and delivered for some seconds. */
const SETTLE_MS = 30_000
/** Each look collects all garbage three times. */
const LOOK_EVERY_MS = 500

const ORDER = "passes this work over to you"
const TODO = { content: "The lexer", status: "pending", priority: "high", id: "1" }
const WORK: readonly ModelReply[] = [
  { tool: "read", input: { filePath: "README.md" } },
  { tool: "todowrite", input: { todos: [TODO] } },
  passOver({ subagent: "audit", objective: "Look at it." }),
]
const DONE: ModelReply = { text: "Done." }

/** An agent that follows the newest message of its session; a reviewer returns at once. */
const script: Script = ({ kind, conversation }) => {
  if (kind === "compaction") return { text: "Something was done." }
  const last = newestWords({ conversation })
  const steps = last.match(/^\[tool\] /gm)?.length ?? 0
  if (last.includes(ORDER)) return steps === 0 ? returns() : DONE
  if (last.includes(BRIEF)) return WORK[steps] ?? DONE
  if (steps > 0) return DONE
  if (last.includes("Hand this work over")) return { tool: "handoff_session", input: { prompt: "Go on.", files: [] } }
  const read = /Read (ses_\w+)/.exec(last)?.[1]
  return read === undefined ? DONE : { tool: "read_session", input: { sessionID: read } }
}

const say = async ({ client }: TestServer, id: string, text: string): Promise<void> => {
  const answer = await client.session.prompt({ path: { id }, body: { parts: [{ type: "text", text }] } })
  expect(answer.data?.info.error).toBeUndefined()
}

/** @returns the ids of all sessions, including children */
const remove = async ({ client }: TestServer): Promise<string[]> => {
  const all = (await client.session.list()).data ?? []
  for (const { id, parentID } of all) if (parentID === undefined) await client.session.delete({ path: { id } })
  expect((await client.session.list()).data).toEqual([])
  return all.map(({ id }) => id)
}

/** Creates sessions that use every feature, and deletes them all. @returns their ids */
const liveAndDie = async (server: TestServer, task: TaskProject): Promise<string[]> => {
  await say(server, await createSession(server), "Say hello.")
  const removed = await remove(server)
  const worker = await createSession(server)
  await say(server, worker, task.message)
  expect(turnsOf(task).join("\n")).toContain("audit → completed")
  await say(server, worker, "No, use tabs instead of spaces in the formatter.")
  const next = await handOver({ client: server.client, model: task.model }, worker, "finish")
  await say(server, next, `Read ${worker}.`)
  for (const id of [worker, next]) await compact(server, id)
  return [...removed, ...(await remove(server))]
}

/** Sessions that a file may still know: the last one is shown until another one replaces it. */
const SHOWN: Readonly<Record<string, number>> = { "live-state/publisher.ts": 1 }
/** Bounded and never cleared: folders that were checked for half-written files. */
const CACHES: ReadonlySet<string> = new Set(["host/state.ts"])

/** Collections that survived the first round and know more deleted sessions, or have more entries, after the second. */
const findGrowth = (before: Held, { collections }: Held, gone: readonly string[]): string[] => {
  const sizes = new Map(before.collections.map(({ number, size }) => [number, size]))
  return collections.flatMap(({ number, file, size, sessions, sample }) => {
    const first = sizes.get(number)
    if (first === undefined || CACHES.has(file)) return []
    const known = sessions.filter((id) => gone.includes(id))
    const isLeft = known.length > (SHOWN[file] ?? 0) || size > first
    return isLeft ? [`${file}: ${first} → ${size} entries, ${known.join(" ")}: ${sample}`] : []
  })
}

const filesOfSessions = ({ project }: TaskProject): string[] =>
  ["tasks", "compactions", "learning/sessions", "learning/waiting"].flatMap((folder) =>
    readdirSync(join(project.directory, ".opencode/state", folder)).map((name) => `${folder}/${name}`),
  )

describe.each(NEWEST_OR_ALL)("OpenCode $version", (binary) => {
  test(promised(["soak.B4", "soak.B5"], "what sessions held goes with them"), { timeout: DEADLINE_MS }, async () => {
    const task = await openTaskProject(binary, script, { context: 1_000_000 })
    const { project } = task
    project.write(".opencode/pass-over.json", '{"defaults":{"auto_return":true}}\n')
    project.write(".opencode/baton.json", "{}\n")
    const held = watchHeld(project)
    const environment = { ...project.environment, ...held.environment }
    const server = await startServer(binary, { ...project, environment })
    try {
      await liveAndDie(server, task)
      await eventually("the files gone", () => filesOfSessions(task).length === 0 || undefined)
      const before = await held.look()
      const gone = await liveAndDie(server, task)
      expect(gone.length).toBeGreaterThan(3)
      let leftBehind: string[] = []
      const isSettled = async () => {
        leftBehind = [...findGrowth(before, await held.look(), gone), ...filesOfSessions(task)]
        return leftBehind.length === 0 || undefined
      }
      await eventually("the end of all records", isSettled, SETTLE_MS, LOOK_EVERY_MS).catch(() => undefined)
      expect(leftBehind).toEqual([])

      await held.dispose()
      let atEnd: string[] = []
      // A delivery that is under way at the end is not waited for, and ends by itself.
      const isOver = async () => {
        const { children, timers, openFiles } = await held.look()
        const programs = children.filter((command) => command.includes("/baton/"))
        const files = openFiles.filter((path) => path.includes("/.opencode/state") || path.includes("/.prog/"))
        atEnd = [...programs, ...timers, ...files]
        return atEnd.length === 0 || undefined
      }
      await eventually("the end of all work", isOver, SETTLE_MS, LOOK_EVERY_MS).catch(() => undefined)
      expect(atEnd).toEqual([])
    } finally {
      await server.stop()
    }
  })
})
