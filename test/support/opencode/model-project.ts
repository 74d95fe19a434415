import { openTestLedger, TASK } from "../ledger/test-ledger.ts"
import { type Script, startScriptedModel } from "../model/scripted-model.ts"
import { isLine2, type OpenCodeBinary } from "./opencode-binary.ts"
import { type RunOptions, type RunResult, runOpenCode } from "./opencode-run.ts"
import { startServer, type TestServer } from "./opencode-server.ts"
import { createTestProject, type ProjectOptions, type TestProject } from "./test-project.ts"

export const BRIEF = "Never touch the lexer; the release is frozen until Friday."
export const MODEL = { providerID: "scripted", modelID: "model" }

/** A worker's first message on a task. */
export const workerMessage = (taskID = "ts-b54507", brief = BRIEF): string =>
  `# Worker\n\nTask: ${taskID}\n\n${brief}\n`

/**
 * OpenCode 2 keeps 20,000 tokens free, where OpenCode 1 keeps the output's: it has a larger context here, of which each step with a given
 * usage leaves as much as in OpenCode 1.
 */
const LARGER_CONTEXT = { context: 80_000, usage: 62_000 }
const USUAL_CONTEXT = 20_000

type Run = Omit<RunOptions, "binary" | "project">

/** A project with a scripted model and a ledger; `await using` removes them, even after an error. */
export const openModelProject = async (
  binary: OpenCodeBinary,
  script: Script = () => ({ text: "Finished." }),
  options: Partial<ProjectOptions> = {},
) => {
  const { context = USUAL_CONTEXT } = options
  const larger = isLine2(binary) && context <= USUAL_CONTEXT ? LARGER_CONTEXT : { context: 0, usage: 0 }
  const model = await startScriptedModel(script, undefined, larger.usage)
  const project = createTestProject({ binary, modelURL: model.url, ...options, context: context + larger.context })
  const ledger = openTestLedger(project, binary)
  const run = (message: string, options: Run = {}) => runOpenCode(message, { binary, project, ...options })
  const close = async (): Promise<void> => {
    await model.close()
    if (!process.env.BATON_KEEP_PROJECTS) await project.remove()
  }
  return {
    binary,
    model,
    project,
    /** The model's, in tokens. */
    context: context + larger.context,
    ledger,
    addTask: (task: Partial<typeof TASK> = {}) => ledger.addTask({ ...TASK, ...task }),
    /** `opencode run MESSAGE`. */
    run,
    /** The same. @throws when the exit code is not 0 */
    runWell: async (message: string, options?: Run): Promise<RunResult> => {
      const result = await run(message, options)
      if (result.exitCode === 0) return result
      throw new Error(`opencode ${binary.version} run exited with ${result.exitCode}: ${result.stderr.slice(-500)}`)
    },
    close,
    [Symbol.asyncDispose]: close,
  }
}

export type ModelProject = Awaited<ReturnType<typeof openModelProject>>

/** An `opencode serve` in the project with additional environment variables; `await using` stops it. */
export const openServer = async (
  { binary, project }: { binary: OpenCodeBinary; project: TestProject },
  environment: Record<string, string> = {},
) => {
  const server = await startServer(binary, { ...project, environment: { ...project.environment, ...environment } })
  return { ...server, [Symbol.asyncDispose]: server.stop }
}

type Speaker = Pick<TestServer, "client">

export const createSession = async ({ client }: Speaker, parentID?: string): Promise<string> => {
  const { data, error } = await client.session.create({ body: parentID === undefined ? {} : { parentID } })
  if (data) return data.id
  throw new Error(`no session was created: ${JSON.stringify(error)}`)
}

/** Sends a user's message and waits for the whole turn. @returns milliseconds. @throws when OpenCode or the model fails */
export const speak = async ({ client }: Speaker, id: string, text: string, noReply = false): Promise<number> => {
  const started = performance.now()
  const body = { model: MODEL, noReply, parts: [{ type: "text" as const, text }] }
  const { data, error } = await client.session.prompt({ path: { id }, body })
  const wrong = error ?? (noReply ? undefined : data?.info.error)
  if (wrong) throw new Error(`OpenCode failed: ${JSON.stringify(wrong).slice(0, 300)}`)
  return performance.now() - started
}

/** Compacts the session as `/compact` does. */
export const compact = async ({ client }: Speaker, id: string): Promise<void> => {
  const { error } = await client.session.summarize({ path: { id }, body: MODEL })
  if (error) throw new Error(`the compaction of ${id} failed: ${JSON.stringify(error).slice(0, 300)}`)
}
