import { field, isRecord } from "../schema.ts"

/**
 * OpenCode 2's context of a plugin: the parts that Baton uses, as seen on 2.0.15. A field is optional where it was seen to be
 * missing. OpenCode's own types are not installed where plugins run.
 */
export type Context = {
  readonly app: { readonly version: string }
  readonly location: Location
  readonly session: SessionDomain
  readonly tool: Hooked<ToolEvents> & Transformed<ToolDraft>
  readonly shell: Hooked<ShellEvents>
  readonly permission: Hooked<PermissionEvents>
  readonly command: Transformed<CommandDraft> & { list(input: object): Promise<Listed<{ readonly name: string }>> }
  readonly agent: { list(input: object): Promise<Listed<Agent>> }
  readonly model: { list(input: object): Promise<Listed<Model>> }
  /** Asks a model, with this prompt alone. */
  readonly generate: {
    text(input: { readonly model: ModelName; readonly prompt: string }): Promise<{ readonly text?: string }>
  }
  readonly event: { subscribe(options: { readonly signal: AbortSignal }): AsyncIterable<unknown> }
}

/** A hook is called for each event, one plugin after the other, and changes the event in place. */
type Hooked<Events> = {
  hook<Name extends keyof Events>(name: Name, run: (event: Events[Name]) => Promise<void>): Promise<unknown>
}

/** The change is made now and whenever OpenCode builds its list again. */
type Transformed<Draft> = { transform(change: (draft: Draft) => void): Promise<unknown> }

type Listed<Item> = { readonly data: readonly Item[] }

export type Location = {
  readonly directory: string
  readonly project: { readonly id: string; readonly directory: string }
}

/** Times are in epoch ms. */
export type Session = {
  readonly id: string
  readonly projectID: string
  readonly parentID?: string
  readonly title?: string
  readonly agent?: string
  readonly model?: ModelName
  readonly time: { readonly created: number; readonly updated: number }
  readonly location: { readonly directory: string }
  /** The user has undone this message and all that follow; the next message makes it final. */
  readonly revert?: { readonly messageID: string }
}

export type ModelName = { readonly id: string; readonly providerID: string }

export type Model = ModelName & {
  readonly limit?: { readonly context?: number; readonly output?: number }
  /** `native`: the provider compacts by itself, and gives no text. */
  readonly settings?: { readonly compaction?: { readonly type?: string } }
}

export type Agent = {
  readonly id: string
  readonly mode?: string
  readonly permissions?: readonly { readonly action: string; readonly resource: string; readonly effect: string }[]
}

type Of = { readonly sessionID: string }

/** Beside a user's text; `mention` is the place in it. */
export type Attached = Partial<Record<"files" | "agents" | "skills", readonly { readonly mention?: unknown }[]>>

/** A message may join the turn that is under way, or wait for its end. */
type Delivery = { readonly delivery?: string }

type SessionDomain = Hooked<SessionEvents> & {
  get(input: Of): Promise<Session>
  /** The messages since the newest compaction, which is the first of them. */
  context(input: Of): Promise<readonly unknown[]>
  prompt(input: Of & Attached & Delivery & { readonly text: string }): Promise<unknown>
  /** Adds a message of the program's. With a description, the interface shows that; without `resume`, no model is asked. */
  synthetic(
    input: Of & { readonly text: string; readonly description: string; readonly resume: false },
  ): Promise<unknown>
  /** Asks the session's model, with the session's messages before this prompt. */
  generate(input: Of & { readonly prompt: string }): Promise<{ readonly text?: string }>
}

type SessionEvents = {
  /** Before a user's message is stored. */
  readonly prompt: PromptEvent
  /** Before each request to the model; no change is stored. */
  readonly context: RequestEvent
  readonly compaction: CompactionEvent
  /** Before a model is asked for a new session's title; with `result` none is. */
  readonly title: Of & { result?: string }
}

export type PromptEvent = Of & { readonly messageID: string; readonly prompt: { text: string } }

type Content = { readonly type: string; readonly text?: string }

export type RequestMessage = { readonly id?: string; readonly role: string; readonly content: Content[] }

export type RequestEvent = Of & {
  readonly agent: string
  readonly model: ModelName
  readonly messages: RequestMessage[]
  readonly tools: Record<string, unknown>
}

/** With `result` no model is asked for a summary. `metadata` is stored with it. OpenCode's prompt follows the messages. */
export type CompactionEvent = Omit<RequestEvent, "tools"> & {
  result?: { readonly summary: string; readonly metadata: Record<string, unknown> }
}

type ToolCall = Of & {
  readonly tool: string
  /** Of the call. */
  readonly id: string
  readonly input: unknown
}

type ToolEvents = {
  /** A throw refuses the call, and the model is told its message. */
  readonly "execute.before": ToolCall
  /** A throw would make a failure of a call that is done. */
  readonly "execute.after": ToolCall & { readonly status: string; readonly result?: { readonly metadata?: unknown } }
}

type ShellEvents = { readonly "create.before": { readonly cwd: string; readonly env: Record<string, string> } }

type PermissionEvents = {
  readonly evaluate: {
    readonly agent?: string
    readonly action: string
    readonly resources: readonly string[]
    effect: "allow" | "ask" | "deny"
    message?: string
  }
}

type ToolDraft = {
  add(tool: {
    readonly name: string
    readonly description: string
    /** Without it the tool stands behind OpenCode's `execute`. */
    readonly options: { readonly codemode: false }
    /** JSON Schema; OpenCode checks the model's arguments by it. */
    readonly input: object
    execute(
      input: unknown,
      context: Of & { readonly messageID: string; readonly agent: string; readonly signal: AbortSignal },
    ): Promise<{ readonly content: string }>
  }): void
}

type CommandDraft = {
  add(command: {
    readonly name: string
    readonly description: string
    execute(input: Of & Delivery & { readonly prompt: Attached & { readonly text?: string } }): Promise<void>
  }): void
}

/** Tells OpenCode 2 by the parts that Baton cannot do without. OpenCode 1.18 calls `setup`, too, with fewer. */
export const isOpenCode2 = (context: unknown): context is Context =>
  ["session", "tool", "shell", "permission"].every((domain) => typeof field(context, domain, "hook") === "function") &&
  typeof field(context, "event", "subscribe") === "function" &&
  isRecord(field(context, "location"))
