import { randomBytes } from "node:crypto"
import { realpath } from "node:fs/promises"
import { homedir } from "node:os"
import { isAbsolute, posix, relative, sep } from "node:path"
import { isMainThread } from "node:worker_threads"
import type { ToolContext } from "@opencode-ai/plugin"
import type { Instance } from "../core/core.ts"
import type { Services } from "../core/services.ts"
import { type StartTimer, startTimer } from "../host/async.ts"
import { createChildSessions } from "../host/child-sessions.ts"
import { describeError, type Log } from "../host/log.ts"
import { createRequests } from "../host/requests.ts"
import { loadZod } from "../host/schema.ts"
import { createSessions, findAgentAndModel } from "../host/sessions.ts"
import { detectUi } from "../host/tui.ts"
import { createActivePasses } from "./child/active-passes.ts"
import { type CollectedContext, collectContext, describeTask } from "./child/context.ts"
import { createChildWork } from "./child/work.ts"
import type { PassOverArguments } from "./contract.ts"
import { createPassRunner, type PassAnswer } from "./pass.ts"
import { readPolicyInUse } from "./policy/policy.ts"
import { policyPath } from "./policy/policy-path.ts"
import { type PassCall, preparePass } from "./prepare.ts"
import { type Approval, approveResult, createEditPermission, createPermissionWatch } from "./result/approval.ts"
import { createDecisions } from "./result/decisions.ts"
import { createAnnouncer, createResultRecorder } from "./result/notify.ts"
import { renderNotice } from "./result/render.ts"
import { acceptReturn } from "./result/work-output.ts"
import { sandboxDirectory, toSandboxPath, toSandboxPaths } from "./sandbox/paths.ts"
import { createSessionHooks } from "./session-hooks.ts"
import { createPassID, needsAnnouncement, type PassRecord } from "./store/record.ts"
import { openStoredPasses, recoverPasses } from "./store/recover.ts"

const CALL_DEADLINE_MS = 10_000

/** The tool call that makes a pass, as far as it matters. */
export type PassContext = Pick<ToolContext, "sessionID" | "messageID" | "agent" | "directory" | "abort" | "ask">

export type PassOverFeature = ReturnType<typeof createPassOverFeature>

export const createPassOverFeature = (
  { input: { client, directory, worktree }, projectRoot, root }: Instance,
  { state, ledger, outbox, tasks, notices }: Services,
  log: Log,
  setTimer: StartTimer = startTimer,
) => {
  const now = () => new Date()
  const userInterface = detectUi({ argv: process.argv, isMainThread })
  // `run` ends with its session's turn, and there is no user to ask.
  const hasUser = userInterface !== "run"
  const sessions = createSessions(client, { deadlineMs: CALL_DEADLINE_MS })
  const childSessions = createChildSessions(client, { deadlineMs: CALL_DEADLINE_MS })
  const { store, owners, passes, sandboxes } = openStoredPasses({ projectRoot, directory, state, log })
  const policyFile = policyPath(projectRoot)
  const activePasses = createActivePasses()
  const permissions = createPermissionWatch(createRequests(client))
  const recordResult = createResultRecorder({ outbox, notices })
  // Outside git, OpenCode names files relative to the root of the file system.
  const relativePath = (path: string) => relative(worktree, path)
  const asRuled = (path: string) => posix.join(relativePath(root).split(sep).join("/"), path)
  const findRoots = () => Promise.all([realpath(root), realpath(directory)])

  const announcer = createAnnouncer({
    sessions,
    childSessions,
    notices: async (sessionID) =>
      (await store.listUnfinished())
        .filter((record) => needsAnnouncement(record) && record.request.originating_session_id === sessionID)
        .map((record) => ({ passID: record.request.pass_over_id, text: renderNotice(record) ?? "" })),
    acknowledge: async (passID) => {
      await passes.announce(passID)
    },
    log,
  })

  const runChild = createChildWork({
    sessions,
    childSessions,
    activePasses,
    passes,
    store,
    sandboxes,
    relativePath,
    asRuled,
    log,
    now,
    startTimer: setTimer,
  })

  const gather = (call: PassCall): Promise<CollectedContext> => {
    const sandbox = activePasses.covering(call.sessionID)?.sandbox
    return collectContext(
      {
        sessions,
        // An originator that works in a sandbox means the files there.
        places: async () => {
          const [realRoot, base] = await (sandbox
            ? Promise.all([realpath(sandbox.root), realpath(sandboxDirectory(sandbox))])
            : findRoots())
          return { root: realRoot, base }
        },
        locate: (path) => (sandbox && isAbsolute(path) ? toSandboxPath(path, sandbox) : path),
        findTask: tasks.find,
        readSpecification: (taskID) => describeTask(ledger, taskID),
      },
      call,
    )
  }

  const approve = (record: PassRecord, ask: ToolContext["ask"]): Promise<Approval> =>
    approveResult(record, { ask, hasUser, passes, questions: permissions, log })

  const passOver = createPassRunner({
    prepare: (call) =>
      preparePass(
        {
          sessions,
          childSessions,
          readPolicy: () => readPolicyInUse(projectRoot, policyFile),
          gather,
          passOf: activePasses.covering,
          findModel: async (sessionID) => (await findAgentAndModel(sessions, sessionID))?.model,
          now,
          createID: (at) => createPassID(at, randomBytes(4).toString("hex")),
        },
        call,
      ),
    passes,
    store,
    sandboxes,
    toSandboxPaths: async (top, sessionID) => {
      const [realRoot] = await findRoots()
      return toSandboxPaths({ directory, roots: [root, realRoot] }, top, activePasses.covering(sessionID)?.sandbox)
    },
    createBoundary: async (sandbox) => {
      const [{ createBoundary }, kept] = await Promise.all([import("./sandbox/boundary.ts"), findRoots()])
      return createBoundary({ sandbox, kept })
    },
    activePasses,
    owners,
    runChild,
    // `run` ends with the turn. A subagent inside a pass ends with its session's turn, since the limits and the sandbox end then.
    canDetach: (sessionID) => hasUser && !activePasses.covering(sessionID),
    onEnd: async (record, pass) => {
      const steps = [
        () => owners.release(pass.id),
        async () => record && recordResult(record),
        async () =>
          record &&
          pass.state.originator !== "waiting" &&
          !activePasses.isEnding() &&
          needsAnnouncement(record) &&
          announcer.notify(record.request.originating_session_id),
        async () => pass.boundary?.remove(),
      ]
      for (const step of steps) {
        try {
          await step()
        } catch (error) {
          log.error("the end of a pass was not noted everywhere", { pass: pass.id, error: describeError(error) })
        }
      }
    },
    recordResult,
    approve,
    log,
    now,
  })
  const recover = async (): Promise<void> => {
    try {
      const unannounced = await recoverPasses({ store, passes, sandboxes, sessions, owners, recordResult, log, now })
      for (const { request } of unannounced) announcer.queue(request.originating_session_id)
    } catch (error) {
      log.error("passes of earlier processes could not be looked at", { error: describeError(error) })
    }
  }
  const recovered = recover()
  void sandboxes.sweep(recovered)
  const hooks = createSessionHooks({
    activePasses,
    announcer,
    permissions,
    tasks,
    sandboxReady: sandboxes.ready,
    home: homedir(),
    hasUser,
    recovered,
    store,
    log,
  })

  return {
    pass: async (args: PassOverArguments, context: PassContext): Promise<PassAnswer> => {
      const { sessionID, messageID, agent } = context
      // A pass made within a pass gets its files from the outer pass's sandbox.
      const above = activePasses.covering(sessionID)
      if (above) await sandboxes.ready(above.id)
      return passOver({ sessionID, messageID, agent, args }, context)
    },
    return: async (args: unknown, { sessionID }: Pick<ToolContext, "sessionID">): Promise<string> => {
      const z = await loadZod()
      const pass = activePasses.of(sessionID)
      if (!pass) return "No work was passed over to this session: there is nothing to return."
      return acceptReturn(z, args, pass)
    },
    ...createDecisions({
      store,
      passes,
      sandboxes,
      approve,
      mayWrite: createEditPermission({ childSessions, asRuled }),
      told: async (record) => {
        if (needsAnnouncement(record)) await passes.announce(record.request.pass_over_id)
      },
      log,
    }),
    ...hooks,
    // The core waits as long as OpenCode's exit allows, and keeps some of it for the outbox.
    stop: activePasses.end,
  }
}
