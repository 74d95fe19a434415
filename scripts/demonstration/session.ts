import { readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { type ChildResult, runChild } from "./child-process.ts"
import type { DemoOptions } from "./options.ts"
import type { Workspace } from "./workspace.ts"

export type OpenCodeContext = { options: DemoOptions; workspace: Workspace; signal: AbortSignal }

const openCode = ({ options, workspace, signal }: OpenCodeContext, ...args: string[]): Promise<ChildResult> =>
  runChild([options.opencode, ...args], { cwd: workspace.directory, environment: workspace.environment, signal })

/** Our own binary's version stands in its package; a foreign one is asked. */
export const openCodeVersion = async (context: OpenCodeContext): Promise<string> => {
  const { opencode, runtime } = context.options
  if (opencode === runtime) {
    const manifest: unknown = JSON.parse(readFileSync(join(dirname(dirname(opencode)), "package.json"), "utf8"))
    return String(Reflect.get(Object(manifest), "version"))
  }
  const { exitCode, stdout, stderr } = await openCode(context, "--version")
  if (exitCode !== 0) throw new Error(`${opencode} --version exited ${exitCode}: ${stderr.trim()}`)
  return stdout.trim()
}

const isFinishedSummary = (message: unknown): boolean => {
  const info: unknown = Reflect.get(Object(message), "info")
  const field = (name: string): unknown => Reflect.get(Object(info), name)
  return field("summary") === true && field("finish") !== undefined && field("error") === undefined
}

/** How often OpenCode itself says that a session was compacted, from its own export of the session. */
export const countCompactions = async (context: OpenCodeContext, sessionID: string): Promise<number> => {
  const { exitCode, stdout, stderr } = await openCode(context, "export", sessionID)
  if (exitCode !== 0) throw new Error(`opencode export exited ${exitCode}: ${stderr.trim()}`)
  const exported: unknown = JSON.parse(stdout.slice(stdout.indexOf("{")))
  const messages: unknown = Reflect.get(Object(exported), "messages")
  if (!Array.isArray(messages))
    throw new Error(`expected messages in opencode's export, received ${stdout.slice(0, 200)}`)
  return messages.filter(isFinishedSummary).length
}

/** Takes the demo's session out of the user's list. @returns whether OpenCode did so */
export const deleteSession = async (context: OpenCodeContext, sessionID: string): Promise<boolean> =>
  (await openCode(context, "session", "delete", sessionID)).exitCode === 0
