/** `load-once.ts PLUGINS_FOLDER PROJECT`: prints what loading the bundle costs in this fresh process, in ms. */
// OpenCode has loaded these itself by the time it loads plugins.
import "node:child_process"
import "node:crypto"
import "node:fs"
import "node:fs/promises"
import "node:os"
import "node:stream"
import "node:url"
import { fakeInput } from "./fake-input.ts"
import { loadBundle } from "./load-bundle.ts"

const timed = async (work: () => Promise<unknown>): Promise<number> => {
  const started = performance.now()
  await work()
  return performance.now() - started
}

type MessageHook = (input: { sessionID: string }, output: { message: object; parts: object[] }) => Promise<void>
/** In a session that was there before: one that begins here loads less. */
const sessionID = `ses_bench${process.pid}`
const messageID = "msg_bench"

const [folder = "", project = ""] = process.argv.slice(2)
const { ms, hooks } = await loadBundle(folder, fakeInput(project))
const messageHooks = hooks.flatMap((each) => each["chat.message"] ?? []) as unknown as MessageHook[]
const message = await timed(() =>
  Promise.all(
    messageHooks.map((hook) => {
      const message = { id: messageID, sessionID, role: "user", time: { created: Date.now() } }
      const part = { id: "prt_bench", sessionID, messageID, type: "text", text: "# Worker\n\nTask: ts-b54507\n" }
      return hook({ sessionID }, { message, parts: [part] })
    }),
  ),
)
const zod = await timed(() => import("@opencode-ai/plugin/tool"))
console.log(JSON.stringify({ ms, message, zod }))
process.exit(0)
