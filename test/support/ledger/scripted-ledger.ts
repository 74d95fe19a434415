import { untrusted } from "../../../.opencode/baton/host/quoted.ts"
import { createLearningCalls } from "../../../.opencode/baton/ledger/client.ts"
import type { Ledger, LedgerTask, LedgerWrite, TaskClaim, TaskRead } from "../../../.opencode/baton/ledger/ledger.ts"

export type Fault =
  | "none"
  /** The call fails and nothing was written. */
  | "refused"
  | "unavailable"
  /** The write succeeds, and the answer is lost. */
  | "written-unheard"

type ScriptedTask = { title: string; status: string; description: string; messages: string[]; labels: string[] }

const newTask = (title: string, description = ""): ScriptedTask => ({
  title,
  status: "open",
  description,
  messages: [],
  labels: [],
})
const summaryOf = ([id, { title, status, labels }]: [string, ScriptedTask]) => ({
  id,
  title: untrusted(title),
  status: untrusted(status),
  labels,
})

const STATUS_AFTER = { cancel: "canceled", open: "open", start: "in_progress" } as const

const noLearnings = async () => ({ kind: "unavailable", reason: "scripted without learnings" }) as const

/** A ledger of tasks in memory with faults set by the test. */
export const createScriptedLedger = (ids: readonly string[] = ["ts-000001"]) => {
  const tasks = new Map<string, ScriptedTask>(ids.map((id) => [id, newTask(id)]))
  const calls: string[] = []
  const script = {
    /** Called at every write. */
    fault: (_call: { id: string; text: string }): Fault => "none",
    readable: true,
    /** By the task's id. */
    claims: new Map<string, TaskClaim>(),
    /** Ids of tasks that wait for another one. */
    waiting: new Set<string>(),
    /** Awaited before every write. */
    gate: async (): Promise<void> => {},
  }

  const write = async (id: string, text: string, apply: (task: ScriptedTask) => void): Promise<LedgerWrite> => {
    await script.gate()
    const fault = script.fault({ id, text })
    const task = tasks.get(id)
    if (fault === "refused" || fault === "unavailable") return { kind: fault, reason: `scripted ${fault}` }
    if (!task) return { kind: "unknown" }
    apply(task)
    return fault === "written-unheard" ? { kind: "unavailable", reason: "no answer" } : { kind: "written" }
  }

  const ledger: Ledger = {
    ...createLearningCalls({ read: noLearnings, write: noLearnings }),
    mayHaveLearnings: async () => false,
    claimTask: async () => ({ kind: "claimed" }),
    renewClaims: async (sessionIDs) => new Map(sessionIDs.map((id) => [id, "claimed"])),
    releaseClaims: async () => {},
    endRuns: async () => {},
    endRunNow: () => {},
    listClaims: async () => (script.readable ? script.claims : undefined),
    readTask: async (id): Promise<TaskRead> => {
      calls.push(`show ${id}`)
      const task = tasks.get(id)
      if (!script.readable) return { kind: "unavailable", reason: "scripted" }
      if (!task) return { kind: "unknown" }
      const logs = task.messages.map((message) => ({
        message: untrusted(message),
        createdAt: "2026-01-01T00:00:00Z",
      }))
      const found: LedgerTask = { ...summaryOf([id, task]), description: untrusted(task.description), logs }
      return { kind: "found", task: found }
    },
    readyTasks: async () => {
      if (!script.readable) return undefined
      const open = [...tasks].map(summaryOf).filter(({ status }) => status.untrusted === "open")
      // As in prog, without labels.
      return open.filter(({ id }) => !script.waiting.has(id)).map(({ id, title, status }) => ({ id, title, status }))
    },
    addTask: async ({ title, description, label }) => {
      calls.push(`add ${title}`)
      if (!script.readable) return { kind: "failed", reason: "scripted" }
      const id = `ts-add00${tasks.size}`
      tasks.set(id, { ...newTask(title, description), labels: label === undefined ? [] : [label] })
      return { kind: "added", id }
    },
    finishTask: (id) => {
      calls.push(`done ${id}`)
      return write(id, "done", () => {})
    },
    setStatus: (id, how) => {
      calls.push(`${how} ${id}`)
      return write(id, how, (task) => {
        task.status = STATUS_AFTER[how]
      })
    },
    setLabel: (id, label, how) => {
      calls.push(`${how} ${id} ${label}`)
      return write(id, how, (task) => {
        task.labels = [...task.labels.filter((each) => each !== label), ...(how === "label" ? [label] : [])]
      })
    },
    rewriteTask: (id, rewritten) => {
      calls.push(`rewrite ${id} ${rewritten.title}`)
      return write(id, rewritten.title, (task) => void Object.assign(task, rewritten))
    },
    listTasks: async () => (script.readable ? [...tasks].map(summaryOf) : undefined),
    appendLog: (id, message) => {
      calls.push(`log ${id} ${message}`)
      return write(id, message, (task) => task.messages.push(message))
    },
    replaceDescription: (id, description) => {
      calls.push(`desc ${id}`)
      return write(id, description, (task) => {
        task.description = description
      })
    },
    shorten: async (_id, text) => text,
    status: async () => ({ program: { kind: "real", path: "/scripted/prog" }, foreign: [] }),
  }
  return { ledger, script, calls, task: (id = "ts-000001") => tasks.get(id) as ScriptedTask }
}
