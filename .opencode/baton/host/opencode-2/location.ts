import type { Hooks } from "@opencode-ai/plugin"
import type { Event } from "@opencode-ai/sdk"
import { createLruMap } from "../async.ts"
import { createLog, describeError, type Log } from "../log.ts"
import { type Host, NOT_YET_ON_2 } from "../port.ts"
import { createProcessRunner } from "../process.ts"
import { bundleRoot } from "../project.ts"
import { field } from "../schema.ts"
import { sharedMap } from "../shared.ts"
import { createClient, toSessionInfo } from "./client.ts"
import type { Context, Location, ModelName, RequestEvent, Session } from "./context.ts"
import { sessionCreated, toEvents } from "./events.ts"
import { inTime } from "./guard.ts"
import { createLogFile } from "./log.ts"
import { bringZod } from "./packages.ts"
import { createPresence, type Presence } from "./presence.ts"
import { type Request, readRequest } from "./request.ts"

/** A folder that OpenCode 2 has open. All of the bundle's plugins share it. */
export type OpenLocation = {
  /** OpenCode's own: one object for all plugins, and another one when it opens the folder again. */
  readonly location: Location
  readonly host: Host
  readonly log: Log
  /**
   * Adds a feature, which from now on is told all events.
   *
   * @returns ends it, and with the last one the location. Resolves when what it had to save is saved
   */
  add(hooks: Hooks): () => Promise<void>
  readonly features: ReadonlySet<Hooks>
  /** To be told of each user's message. */
  readonly sent: Presence["sent"]
  /** Undefined when OpenCode does not say in time. */
  session(sessionID: string): Promise<Session | undefined>
  /** Makes up for the event of a session that began before a plugin could hear of it. Never rejects. */
  know(sessionID: string): Promise<void>
  /** One translation of each request for all features. @throws Error when OpenCode does not give the messages */
  request(event: RequestEvent): Promise<Request>
  /** The context size in tokens; undefined where it is not known. Never rejects. */
  contextOf(model: ModelName): Promise<number | undefined>
}

const createLocation = (context: Context, onClose: () => void): OpenLocation => {
  const { directory, project } = context.location
  const presence = createPresence()
  const client = createClient(context, createLogFile(), presence)
  const log = createLog(client, "opencode-2")
  const host = {
    client,
    directory,
    worktree: project.directory,
    project: { id: project.id, worktree: project.directory, time: { created: 0 } },
    $: field(globalThis, "Bun", "$"),
    endsOneByOne: true,
    lacks: new Set(["drafts", "turn states", "child sessions"]),
  } as unknown as Host
  const features = new Set<Hooks>()
  const known = createLruMap<true>()
  const sizes = createLruMap<number>()
  const requests = new WeakMap<RequestEvent, Promise<Request>>()
  const ending = new AbortController()

  const tell = async (event: Event): Promise<void> => {
    for (const { event: observe } of features) await observe?.({ event })
  }

  /** A hook goes on without what OpenCode does not say in time. */
  const ask = async <T>(what: string, work: Promise<T>): Promise<T | undefined> => {
    try {
      return await inTime(work)
    } catch (error) {
      log.warn(`not known: ${what}`, { error: describeError(error) })
      return undefined
    }
  }

  const listen = async (): Promise<void> => {
    for await (const raw of context.event.subscribe({ signal: ending.signal })) {
      presence.observe(raw)
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
  }

  bringZod(createProcessRunner({ shell: undefined }), log).catch((error: unknown) =>
    log.warn("zod could not be looked for", { error: describeError(error) }),
  )
  listen().then(
    () => {
      if (!ending.signal.aborted) log.info("no event is heard any more", { directory })
    },
    (error: unknown) => {
      if (!ending.signal.aborted) log.error("no event is heard any more", { error: describeError(error) })
    },
  )
  log.info(`not there yet on OpenCode 2: ${NOT_YET_ON_2}`, { version: context.app.version, directory })

  return {
    location: context.location,
    host,
    log,
    sent: presence.sent,
    features,
    add: (hooks) => {
      features.add(hooks)
      return async () => {
        if (!features.delete(hooks)) return
        if (features.size === 0) {
          onClose()
          ending.abort()
        }
        await hooks.dispose?.()
      }
    },
    session: (sessionID) => ask("a session", context.session.get({ sessionID })),
    know: async (sessionID) => {
      if (known.has(sessionID)) return
      known.set(sessionID, true)
      const asked = Promise.all([context.session.get({ sessionID }), context.session.context({ sessionID })])
      const [session, entries] = (await ask("whether a session is new", asked)) ?? []
      // One with messages is older than this process.
      if (session && entries?.length === 0) await tell(sessionCreated(toSessionInfo(session)))
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
      const models = await ask("the models", context.model.list({}))
      const found = models?.data.find((model) => model.providerID === providerID && model.id === id)?.limit?.context
      if (found !== undefined && found > 0) sizes.set(key, found)
      return found
    },
  }
}

const locations = sharedMap<OpenLocation>("opencode-2")

/** Opens the folder, or gives what another plugin of the bundle has opened. */
export const openLocation = (context: Context): OpenLocation => {
  const key = `${bundleRoot}\n${context.location.directory}`
  const open = locations.get(key)
  // A reload opens the folder again while a turn still holds the old plugins.
  if (open?.location === context.location) return open
  const created = createLocation(context, () => {
    // The folder may be open again by now.
    if (locations.get(key) === created) locations.delete(key)
  })
  locations.set(key, created)
  return created
}
