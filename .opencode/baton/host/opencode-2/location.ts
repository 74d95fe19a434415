import type { Hooks } from "@opencode-ai/plugin"
import type { Event } from "@opencode-ai/sdk"
import { createLruMap, withDeadline } from "../async.ts"
import { createLog, describeError, type Log } from "../log.ts"
import { type Host, NOT_YET_ON_2 } from "../port.ts"
import { bundleRoot } from "../project.ts"
import { field } from "../schema.ts"
import { sharedMap } from "../shared.ts"
import { createClient, toSessionInfo } from "./client.ts"
import type { Context, ModelName, RequestEvent } from "./context.ts"
import { sessionCreated, toEvents } from "./events.ts"
import { createLogFile } from "./log.ts"
import { type Request, readRequest } from "./request.ts"

/** For a call to OpenCode in a hook, which the session waits for. */
const CALL_DEADLINE_MS = 1_000

/** A folder that OpenCode 2 has open. All of the bundle's plugins share it. */
export type OpenLocation = {
  readonly host: Host
  readonly log: Log
  /** Adds a feature, which from now on is told all events. */
  add(hooks: Hooks): void
  readonly features: readonly Hooks[]
  /** Makes up for the event of a session that began before a plugin could hear of it. */
  know(sessionID: string): Promise<void>
  /** One translation of each request for all features. @throws Error when OpenCode does not give the messages */
  request(event: RequestEvent): Promise<Request>
  /** The context size in tokens; undefined where it is not known. */
  contextOf(model: ModelName): Promise<number | undefined>
  /** Ends all features. Resolves when what they had to save is saved. */
  close(): Promise<void>
}

const inTime = async <T>(work: Promise<T>): Promise<T> => {
  const outcome = await withDeadline(work, CALL_DEADLINE_MS)
  if (outcome.kind === "done") return outcome.value
  throw outcome.kind === "failed" ? outcome.error : new Error(`no answer within ${CALL_DEADLINE_MS} ms`)
}

const createLocation = (context: Context, onClose: () => void): OpenLocation => {
  const { directory, project } = context.location
  const client = createClient(context, createLogFile())
  const log = createLog(client, "opencode-2")
  const host = {
    client,
    directory,
    worktree: project.directory,
    project: { id: project.id, worktree: project.directory, time: { created: 0 } },
    $: field(globalThis, "Bun", "$"),
    lacks: new Set(["drafts", "turn states", "child sessions"]),
  } as unknown as Host
  const features: Hooks[] = []
  const known = createLruMap<true>()
  const sizes = createLruMap<number>()
  const requests = new WeakMap<RequestEvent, Promise<Request>>()
  const ending = new AbortController()
  let closing: Promise<void> | undefined

  const tell = async (event: Event): Promise<void> => {
    for (const { event: observe } of features) await observe?.({ event })
  }

  const listen = async (): Promise<void> => {
    for await (const raw of context.event.subscribe({ signal: ending.signal }))
      for (const event of toEvents(raw, directory)) {
        if (event.type === "session.created") {
          const { id } = event.properties.info
          if (known.has(id)) continue
          known.set(id, true)
        }
        if (event.type === "session.deleted") known.delete(event.properties.info.id)
        await tell(event)
      }
  }

  listen().catch((error: unknown) => {
    if (!ending.signal.aborted) log.error("no event is heard any more", { error: describeError(error) })
  })
  log.info(`not there yet on OpenCode 2: ${NOT_YET_ON_2}`, { version: context.app.version, directory })

  return {
    host,
    log,
    features,
    add: (hooks) => void features.push(hooks),
    know: async (sessionID) => {
      if (known.has(sessionID)) return
      known.set(sessionID, true)
      const [session, entries] = await inTime(
        Promise.all([context.session.get({ sessionID }), context.session.context({ sessionID })]),
      )
      // One with messages is older than this process.
      if (entries.length === 0) await tell(sessionCreated(toSessionInfo(session)))
    },
    request: (event) => {
      const begun = requests.get(event) ?? inTime(readRequest(context, event))
      requests.set(event, begun)
      return begun
    },
    contextOf: async ({ providerID, id }) => {
      const key = `${providerID}/${id}`
      const size = sizes.get(key)
      if (size !== undefined) return size
      const { data } = await inTime(context.model.list({}))
      const found = data.find((model) => model.providerID === providerID && model.id === id)?.limit?.context
      if (found !== undefined && found > 0) sizes.set(key, found)
      return found
    },
    close: () => {
      onClose()
      ending.abort()
      closing ??= Promise.all(features.map(async ({ dispose }) => dispose?.())).then(() => {})
      return closing
    },
  }
}

const locations = sharedMap<OpenLocation>("opencode-2")

/** Opens the folder, or gives what another plugin of the bundle has opened. */
export const openLocation = (context: Context): OpenLocation => {
  const key = `${bundleRoot}\n${context.location.directory}`
  const open = locations.get(key)
  if (open) return open
  const created = createLocation(context, () => {
    // It may be open again.
    if (locations.get(key) === created) locations.delete(key)
  })
  locations.set(key, created)
  return created
}
