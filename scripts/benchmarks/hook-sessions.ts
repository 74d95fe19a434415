import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { runProgram } from "../../test/support/opencode-run.ts"
import type { TestServer } from "../../test/support/opencode-server.ts"
import type { Script } from "../../test/support/scripted-model.ts"
import type { BenchProject } from "./bench-project.ts"
import { readNotes } from "./hook-notes.ts"
import { type ExportedSession, multiplySession } from "./seed-session.ts"

export const SUMMARY = "## Done\n- The parser reads CRLF.\n\n## Next\n- Run the tests on Windows line ends.\n"

/** Any session: one tool step, a reply, and a summary when asked for one. */
export const sessionScript: Script = (request) => {
  if (request.kind === "compaction") return { text: SUMMARY }
  if (!request.conversation.includes("echo step")) return { tool: "bash", input: { command: "echo step" } }
  return { text: "The step is done. ".repeat(20) }
}

/** Runs a small session and reads it back with `opencode export`. */
export const recordTemplate = async ({ binary, project, run }: BenchProject): Promise<ExportedSession> => {
  await run("Take a step.")
  const sessionID = project
    .log()
    .match(/\bses_[A-Za-z0-9]{20,}/g)
    ?.at(-1)
  if (!sessionID) throw new Error("OpenCode's log names no session")
  const exported = await runProgram([binary.path, "export", sessionID], { project })
  return JSON.parse(exported.stdout) as ExportedSession
}

/** Imports a session of `count` messages made from the template. @returns its id */
export const importSession = async (
  { binary, project }: BenchProject,
  template: ExportedSession,
  count: number,
  index: number,
): Promise<string> => {
  const session = multiplySession(template, { count, untilMs: Date.now() - 60_000, index })
  const file = join(project.home, `session-${index}.json`)
  writeFileSync(file, JSON.stringify(session))
  const imported = await runProgram([binary.path, "import", file], { project })
  if (imported.exitCode !== 0) throw new Error(`opencode import exited with ${imported.exitCode}: ${imported.stderr}`)
  return session.info.id
}

const path = (id: string) => ({ path: { id } })

/** Gives the session a task, as a user's message does, without asking the model for anything. */
export const bindTask = async ({ client }: TestServer, id: string): Promise<void> => {
  const text = "# Worker\n\nTask: ts-b54507\n\nNever touch the lexer; the release is frozen until Friday.\n"
  const { error } = await client.session.prompt({
    ...path(id),
    body: { noReply: true, parts: [{ type: "text", text }] },
  })
  if (error) throw new Error(`the task message was refused: ${JSON.stringify(error)}`)
}

/** How many messages the server has of a session, as far as `atLeast` goes. */
export const countMessages = async ({ client }: TestServer, id: string, atLeast: number): Promise<number> => {
  const { data } = await client.session.messages({ ...path(id), query: { limit: atLeast } })
  return data?.length ?? 0
}

/** Compactions are minutes apart; what OpenCode and the bundle still do after one must not fall into the next. */
const SETTLE_MS = 500

/** Compacts the session as `/compact` does. @returns what the timed hook noted, in milliseconds */
export const compact = async ({ client }: TestServer, id: string, file: string): Promise<number> => {
  const body = { providerID: "scripted", modelID: "model" }
  await new Promise((resolve) => setTimeout(resolve, SETTLE_MS))
  const { error } = await client.session.summarize({ ...path(id), body })
  if (error) throw new Error(`the compaction of ${id} failed: ${JSON.stringify(error).slice(0, 300)}`)
  const noted = readNotes(file).at(-1)
  if (noted?.sessionID === id && noted.prompt > 0) return noted.ms
  throw new Error(`the hook did not replace the prompt of ${id}: ${JSON.stringify(noted)}`)
}
