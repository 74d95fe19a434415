import type { Hooks } from "@opencode-ai/plugin"
import type { Context } from "./context.ts"

/** Sets variables of the agent's shell. OpenCode 2 does not say for which session. */
export const hookShell = async (context: Context, setEnvironment: Hooks["shell.env"]): Promise<void> => {
  if (!setEnvironment) return
  await context.shell.hook("create.before", async ({ cwd, env }) => {
    const path = env.PATH
    const output = { env: path === undefined ? {} : { PATH: path } }
    await setEnvironment({ cwd }, output)
    Object.assign(env, output.env)
  })
}
