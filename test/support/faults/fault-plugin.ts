import { appendFileSync, readFileSync } from "node:fs"
import { join } from "node:path"
import type { Plugin } from "@opencode-ai/plugin"

/**
 * A plugin that tests add to the project: it breaks calls of the client that all plugins of OpenCode share. The file
 * `client-fault session.messages` in HOME holds the fault (`hangs`) and is read at each call; `client-faults` counts the broken
 * calls. `client-fault every call` breaks all calls.
 */
const BROKEN: Record<string, () => unknown> = {
  "answers an error": async () => ({ error: { name: "ScriptedError", data: { message: "scripted" } } }),
  throws: () => {
    throw new Error("scripted throw")
  },
  rejects: () => Promise.reject(new Error("scripted rejection")),
  hangs: () => new Promise(() => {}),
  "answers nothing": async () => undefined,
  "answers a page of HTML": async () => ({ data: "<!doctype html>" }),
  "answers objects without their fields": async () => ({ data: [{ info: null }, 7] }),
}

const CALLS = [
  ["session", "messages"],
  ["session", "get"],
  ["session", "todo"],
  ["session", "create"],
  ["session", "prompt"],
  ["session", "promptAsync"],
  ["app", "log"],
] as const

/** Stands for all calls in a file name. */
const EVERY_CALL = "every call"

const home = process.env.HOME ?? ""

const readFault = (call: string): string | undefined => {
  try {
    return readFileSync(join(home, `client-fault ${call}`), "utf8")
  } catch {
    return undefined
  }
}

export const ClientFault: Plugin = async ({ client }) => {
  for (const [group, name] of CALLS) {
    const holder: Record<string, unknown> = Object(client[group])
    const real = holder[name]
    if (typeof real !== "function") throw new Error(`the client has no ${group}.${name}`)
    holder[name] = (...args: unknown[]): unknown => {
      const call = `${group}.${name}`
      const how = readFault(call) ?? readFault(EVERY_CALL)
      const broken = how === undefined ? undefined : BROKEN[how]
      if (!broken) return real.apply(holder, args)
      appendFileSync(join(home, "client-faults"), `${call} ${how}\n`)
      return broken()
    }
  }
  return {}
}
