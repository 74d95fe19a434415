import { join } from "node:path"
import type { Hooks, PluginInput } from "@opencode-ai/plugin"
import { createBundle } from "../host/bundle.ts"
import { guardHook, guardObserver } from "../host/guard.ts"
import { createSessionStore } from "../host/session-store.ts"
import { createLedger } from "../ledger/client.ts"
import { createOutbox } from "../ledger/outbox.ts"
import { taskBindingSchema } from "../task/binding.ts"
import { createPromptFiles } from "../task/prompt-files.ts"
import { createTaskRegistry } from "../task/registry.ts"
import { collectUserText } from "../task/user-text.ts"
import { createCompaction } from "./compaction.ts"
import { createJournals, journalSchema } from "./journal.ts"

/** In all, for the hook that OpenCode waits on before it asks for a summary. */
const COMPACTING_DEADLINE_MS = 3_000
const MESSAGES_DEADLINE_MS = 3_000
const CHAT_MESSAGE_DEADLINE_MS = 1_000
/** `opencode run` waits for dispose on newer versions; it must end no later than 1 s after it would have. */
const FLUSH_DEADLINE_MS = 700

/** The compaction handoff's hooks for one directory of one OpenCode process. */
export const createCompactionHooks = (input: PluginInput): Hooks => {
  const bundle = createBundle(input, "compaction-handoff")
  const { log, state, claim, sessions, run, directory, worktree, bundleRoot } = bundle
  const now = () => new Date()
  const ledger = createLedger({ run, directory, log, state, bundleRoot })
  const outbox = createOutbox({ ledger, state, log, now })
  const tasks = createTaskRegistry({
    store: createSessionStore({ state, folder: "tasks", schema: taskBindingSchema, log }),
    sessions,
    log,
    now,
  })
  const journals = createJournals(createSessionStore({ state, folder: "compactions", schema: journalSchema, log }))
  const prompts = createPromptFiles({ root: bundle.projectRoot })
  const root = worktree === "/" ? directory : worktree
  const compaction = createCompaction({
    tasks,
    journals,
    outbox,
    ledger,
    prompts,
    sessions,
    run,
    directory,
    root,
    log,
    now,
  })
  const aboutSession = ({ sessionID }: { sessionID: string }) => ({ sessionID })
  const ifHeld = <Input, Output>(hook: (input: Input, output: Output) => Promise<void>) => {
    return async (input: Input, output: Output): Promise<void> => {
      if (claim.isHeld()) await hook(input, output)
    }
  }
  if (!claim.isHeld()) log.info("another copy of the bundle serves this project: this one stays quiet", { bundleRoot })
  return {
    "chat.message": ifHeld(
      guardHook(
        log,
        { name: "chat.message", deadlineMs: CHAT_MESSAGE_DEADLINE_MS },
        async ({ sessionID }, { parts }) => {
          await tasks.userMessage(sessionID, collectUserText(parts))
          return undefined
        },
        aboutSession,
      ),
    ),
    "chat.params": ifHeld(
      guardHook(log, { name: "chat.params", deadlineMs: CHAT_MESSAGE_DEADLINE_MS }, async (request) => {
        compaction.modelUsed(request)
        return undefined
      }),
    ),
    "tool.execute.after": ifHeld(
      guardHook(log, { name: "tool.execute.after", deadlineMs: CHAT_MESSAGE_DEADLINE_MS }, async (call, result) => {
        compaction.toolUsed(call.sessionID, { tool: call.tool, args: call.args, metadata: result.metadata })
        return undefined
      }),
    ),
    "experimental.session.compacting": ifHeld(
      guardHook(
        log,
        { name: "experimental.session.compacting", deadlineMs: COMPACTING_DEADLINE_MS },
        ({ sessionID }, output) => compaction.preparePrompt(sessionID, output),
        aboutSession,
      ),
    ),
    "experimental.chat.messages.transform": ifHeld(
      guardHook(
        log,
        { name: "experimental.chat.messages.transform", deadlineMs: MESSAGES_DEADLINE_MS },
        (_input, { messages }) => compaction.remind(messages),
        (_input, { messages }) => ({ sessionID: messages[0]?.info.sessionID }),
      ),
    ),
    "shell.env": ifHeld(
      guardHook(log, { name: "shell.env", deadlineMs: CHAT_MESSAGE_DEADLINE_MS }, async (_input, output) => () => {
        const path = output.env.PATH ?? process.env.PATH ?? ""
        output.env.PATH = `${join(bundleRoot, "bin")}:${path}`
        // On Desktop execPath is not OpenCode's own binary and cannot act as Bun.
        if (process.versions.bun !== undefined) output.env.BATON_RUNTIME = process.execPath
      }),
    ),
    event: guardObserver(log, "event", ({ event }) => {
      if (claim.isHeld()) compaction.observe(event)
    }),
    dispose: async () => {
      await outbox.flush(FLUSH_DEADLINE_MS)
      outbox.stop()
      compaction.stop()
      claim.release()
    },
  }
}
