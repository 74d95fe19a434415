import { posix } from "node:path"
import type { ToolContext } from "@opencode-ai/plugin"
import { withDeadline } from "../../host/async.ts"
import type { ChildSessions } from "../../host/child-sessions.ts"
import { printableLine } from "../../host/cli.ts"
import { describeError, type Log } from "../../host/log.ts"
import { evaluate } from "../../host/permissions.ts"
import { SETTINGS_FILES } from "../../host/project.ts"
import type { Requests } from "../../host/requests.ts"
import { counted, cutText } from "../../host/text.ts"
import { RESULT_PERMISSION } from "../agents.ts"
import { artifactsOf, type FileModification } from "../contract.ts"
import type { PassSignal } from "../signals.ts"
import type { Passes } from "../store/passes.ts"
import { criticalFindings, type PassRecord, type Releaser, reasonToAsk } from "../store/record.ts"
import { renderVerdict } from "./notify.ts"

/** Files whose last name says that build tools, editors or interpreters run them without being asked. */
const MANIFEST = new RegExp(
  String.raw`^(?:package(?:-lock)?\.json|npm-shrinkwrap\.json|yarn\.lock|pnpm-(?:lock|workspace)\.yaml|bun\.lockb?|bunfig\.toml|deno\.jsonc?|` +
    String.raw`(?:gnu)?makefile(?:\..*)?|.*\.mk|cmakelists\.txt|cmakepresets\.json|.*\.cmake|meson\.build|configure(?:\.ac)?|sconstruct|` +
    String.raw`build(?:\.bazel)?|workspace(?:\.bazel)?|module\.bazel|.*\.bzl|cargo\.(?:toml|lock)|build\.rs|go\.(?:mod|work)|` +
    String.raw`pom\.xml|.*\.gradle(?:\.kts)?|gradlew(?:\.bat)?|gradle\.properties|mvnw(?:\.cmd)?|build\.(?:xml|sbt|sc|zig|ninja)|` +
    String.raw`pyproject\.toml|setup\.(?:py|cfg)|(?:tox|pytest)\.ini|noxfile\.py|conftest\.py|(?:site|user)customize\.py|.*\.pth|pipfile(?:\.lock)?|` +
    String.raw`rakefile|gemfile(?:\.lock)?|.*\.gemspec|composer\.(?:json|lock)|mix\.exs|package\.swift|podfile|rebar\.config|` +
    String.raw`.*\.(?:cs|fs|vb|vcx)proj|directory\.build\.(?:props|targets)|.*\.sln|(?:flake|shell|default)\.nix|` +
    String.raw`justfile|taskfile\.ya?ml|turbo\.json|nx\.json|lerna\.json|lefthook(?:-local)?\.ya?ml|(?:gulp|grunt|jake)file\..*|.*\.config\.[cm]?[jt]s|` +
    String.raw`dockerfile(?:\..*)?|containerfile|(?:docker-)?compose(?:\..*)?\.ya?ml|vagrantfile|jenkinsfile|procfile|azure-pipelines\.ya?ml)$`,
  "i",
)

/** Instructions that agents obey, Baton's prompts and OpenCode's settings among them; what is in `.opencode` has a dot in front. */
const OBEYED = new RegExp(
  String.raw`(?:^|\/)(?:(?:AGENTS|CLAUDE|GEMINI)(?:\.local)?\.md|${SETTINGS_FILES.map((name) => name.replace(".", "[.]")).join("|")}|prompts\/(?:handoff|handoff-command|worker|planner)\.md)$`,
  "i",
)

/** @returns the reason why a file may run by itself, by the kind of its name; tests and scripts are free */
const reasonToRun = (path: string): string | undefined => {
  if (path.split("/").some((name) => name.startsWith(".")))
    return "a name with a dot in front is for tools, which read it unasked"
  if (OBEYED.test(path)) return "agents obey it"
  return MANIFEST.test(posix.basename(path)) ? "build tools run what it says" : undefined
}

const isRun = (path: string): boolean => reasonToRun(path) !== undefined

const EXECUTABLE = "100755"

/** @param path of the link, relative to the worktree */
const leadsOut = (path: string, target: string): boolean => {
  const reached = posix.normalize(posix.join(posix.dirname(path), target))
  return posix.isAbsolute(target) || /^\.\.(?:\/|$)|^\.git(?:\/|$)/i.test(reached)
}

type Named = Pick<FileModification, "path" | "previous_path" | "link_target"> &
  Partial<Pick<FileModification, "new_mode">>

/** @returns the reason why a changed file is applied by its name alone; undefined for any other file */
export const reasonForName = ({
  path,
  previous_path: previous,
  link_target: target,
  new_mode,
}: Named): string | undefined => {
  const reason = reasonToRun(path) ?? (previous === undefined ? undefined : reasonToRun(previous))
  if (reason !== undefined) return reason
  if (new_mode === EXECUTABLE) return "it is executable"
  return target !== undefined && leadsOut(path, target) ? "it leads out of the worktree" : undefined
}

type Asked =
  /** By the user, or by a rule of the user. */
  | { readonly kind: "granted" }
  | { readonly kind: "refused"; readonly reason: string }
  /** OpenCode 1.4 to 1.15.4 gives plugins an effect that only OpenCode itself could run, so the question cannot be asked. */
  | { readonly kind: "unsupported" }

/** Asks like OpenCode's own tools: by the user's rules, and the user where those say `ask`. Never rejects. */
const askUser = async (ask: ToolContext["ask"], question: Parameters<ToolContext["ask"]>[0]): Promise<Asked> => {
  try {
    const asked = ask(question)
    if (!("then" in asked)) return { kind: "unsupported" }
    await asked
    return { kind: "granted" }
  } catch (error) {
    return { kind: "refused", reason: describeError(error) }
  }
}

type MayWrite = Exclude<Asked, { kind: "unsupported" }>

const NOT_WITHOUT_RULE = "this OpenCode cannot ask you from here, and no rule of yours that it tells of allows it"

type EditDeps = {
  readonly childSessions: Pick<ChildSessions, "agents" | "parentAndPermissions">
  /** Names a file of the project as OpenCode's rules do. */
  readonly asRuled: (path: string) => string
}

/** Checks whether an agent may write files in a session. @param paths relative to the project's top folder */
export const createEditPermission =
  ({ childSessions, asRuled }: EditDeps) =>
  async (
    paths: readonly string[],
    passID: string,
    { sessionID, agent, ask }: Pick<ToolContext, "sessionID" | "agent" | "ask">,
  ): Promise<MayWrite> => {
    const [agents, own] = await Promise.all([childSessions.agents(), childSessions.parentAndPermissions(sessionID)])
    const rules =
      agents.kind === "ok" && own.kind === "ok"
        ? [...(agents.value.find(({ name }) => name === agent)?.permission ?? []), ...own.value.permission]
        : undefined
    const patterns = paths.map(asRuled)
    const actions = rules && patterns.map((pattern) => evaluate(rules, "edit", pattern))
    // OpenCode puts the answer "always" behind every rule, also behind the denial of files that run.
    if (paths.some(isRun) && (actions?.includes("deny") ?? true)) return { kind: "refused", reason: "a rule denies it" }
    const question = { permission: "edit", patterns, always: ["*"], metadata: { pass_over_id: passID } }
    const asked = await askUser(ask, question)
    if (asked.kind !== "unsupported") return asked
    // The user cannot be asked, so the rules alone decide.
    const isAllowed = actions?.every((action) => action === "allow")
    return isAllowed ? { kind: "granted" } : { kind: "refused", reason: NOT_WITHOUT_RULE }
  }

export type EditPermission = ReturnType<typeof createEditPermission>

type Question = Extract<PassSignal, { kind: "asked" }>

/** Tracks the questions about passes that OpenCode shows and that have no answer yet. */
export const createPermissionWatch = (requests: Pick<Requests, "answerPermission">) => {
  const open = new Map<string, Question>()
  /** The passes whose results the user is or was asked for. */
  const shown = new Set<string>()
  /** The subagents whose results without a critical finding the user allows until OpenCode ends. */
  const allowed = new Set<string>()
  const reject = async ({ sessionID, permissionID }: Question): Promise<void> => {
    open.delete(permissionID)
    await requests.answerPermission(sessionID, permissionID, "reject")
  }
  return {
    asked: (question: Question): void => {
      const { passID, permissionID, subagent } = question
      if (passID === undefined) return
      open.set(permissionID, question)
      if (subagent !== undefined) shown.add(passID)
    },
    answered: (permissionID: string, reply: string | undefined): void => {
      const { subagent, isCritical } = open.get(permissionID) ?? {}
      open.delete(permissionID)
      if (reply === "always" && subagent !== undefined && !isCritical) allowed.add(subagent)
    },
    isAllowed: (subagent: string): boolean => allowed.has(subagent),
    /** True once for a result that the user was asked for; a rule answers without that. */
    wasAsked: (passID: string): boolean => shown.delete(passID),
    /** The session was deleted, and its questions with it. */
    forget: (sessionID: string): void => {
      for (const question of open.values()) if (question.sessionID === sessionID) open.delete(question.permissionID)
    },
    /** Answers no when there is no user. */
    refuse: reject,
    cancelPrompt: async (passID: string): Promise<void> => {
      for (const question of open.values()) if (question.passID === passID) await reject(question)
    },
  }
}

export type PermissionWatch = ReturnType<typeof createPermissionWatch>

/** A server cannot tell whether a user is present. */
const ANSWER_DEADLINE_MS = 60_000

export type Approval =
  | { readonly kind: "approved"; readonly note: string | undefined }
  /** By the user. */
  | { readonly kind: "refused" }

type ApprovalDeps = {
  readonly ask: ToolContext["ask"]
  readonly hasUser: boolean
  readonly passes: Pick<Passes, "approve" | "withheld">
  readonly questions: Pick<PermissionWatch, "isAllowed" | "wasAsked" | "cancelPrompt">
  readonly log: Log
  /** Default 60 s. */
  readonly answerDeadlineMs?: number
}

const SHOWN_CHARACTERS = 300
const MORE_CRITICAL = " (and more)"

/** "coder: changes requested, 2 findings, 3 files read, 1 file changed. critical a.ts:3: … Asked since it has a critical finding." */
const renderQuestion = (record: PassRecord, why: string): string => {
  const files = artifactsOf(record.output, "file_modification").length
  const critical = record.output?.summary.findings.filter((line) => line.startsWith("critical")) ?? []
  const [first] = critical
  return printableLine(
    [
      `${record.request.subagent_id}: ${renderVerdict(record.output)}, ${counted(files, "file")} changed.`,
      ...(first === undefined
        ? []
        : [`${cutText(first, SHOWN_CHARACTERS)}${critical.length > 1 ? MORE_CRITICAL : ""}.`]),
      `Asked since ${why}.`,
    ].join(" "),
  )
}

/**
 * Asks the user in OpenCode's dialog whether a result may go back; without an answer it goes back, with a note. Every tool that
 * returns a result calls this; after a yes it does not ask again.
 *
 * @throws when the approval cannot be stored
 */
export const approveResult = async (record: PassRecord, deps: ApprovalDeps): Promise<Approval> => {
  const why = reasonToAsk(record)
  if (why === undefined) return { kind: "approved", note: undefined }
  const { note, by, isRefused } = await askForApproval(record, why, deps)
  if (isRefused) {
    await deps.passes.withheld(record, by)
    return { kind: "refused" }
  }
  await deps.passes.approve(record.request.pass_over_id, by)
  return { kind: "approved", note }
}

type Answer = { readonly by: Releaser; readonly note?: string; readonly isRefused?: true }

const askForApproval = async (record: PassRecord, why: string, deps: ApprovalDeps): Promise<Answer> => {
  const { questions } = deps
  if (!deps.hasUser) return { by: "run", note: `No user could be asked whether it may go back (${why}).` }
  const { pass_over_id: passID, subagent_id: subagent } = record.request
  const isCritical = criticalFindings(record).length > 0
  if (!isCritical && questions.isAllowed(subagent)) return { by: "user" }
  const text = renderQuestion(record, why)
  const question = {
    // OpenCode's dialog shows the name of a permission, and nothing else of one that it does not know.
    permission: `${RESULT_PERMISSION} ${text}`,
    patterns: [text],
    // Shown to a user who answers "always". The permission is never the same again: Baton keeps that answer itself.
    always: [isCritical ? "this result alone" : `results of ${subagent} without a critical finding`],
    metadata: {
      pass_over_id: passID,
      subagent,
      is_critical: isCritical,
      status: record.output?.status,
      decision: record.output?.summary.decision,
      summary: record.output?.summary.text,
    },
  }
  const deadlineMs = deps.answerDeadlineMs ?? ANSWER_DEADLINE_MS
  const answer = await withDeadline(askUser(deps.ask, question), deadlineMs)
  // Without a question a rule has answered.
  const by = questions.wasAsked(passID) ? "user" : "policy"
  const context = { pass: passID, sessionID: record.request.originating_session_id, by }
  switch (answer.kind === "done" ? answer.value.kind : "late") {
    case "granted":
      return { by }
    case "refused":
      deps.log.info("a result was not approved", context)
      return { by, isRefused: true }
    case "unsupported":
      deps.log.warn("plugin tools cannot ask on this OpenCode version; result returned without approval", context)
      return { by: "unsupported", note: `This OpenCode cannot ask whether it may go back (${why}).` }
    case "late": {
      await questions.cancelPrompt(passID)
      const seconds = deadlineMs / 1000
      return {
        by: "silence",
        note: `No answer came within ${seconds} s to the question whether it may go back (${why}).`,
      }
    }
  }
}
