import { existsSync, statSync } from "node:fs"
import { join } from "node:path"
import type { Hooks } from "@opencode-ai/plugin"
import type { Part, UserMessage } from "@opencode-ai/sdk"
import type { Core } from "../core/core.ts"
import { createLruMap, lazy, withDeadline } from "../host/async.ts"
import { describeError } from "../host/log.ts"
import { sharesText } from "../host/messages.ts"
import { stateRoot } from "../host/project.ts"
import { foldText } from "../host/text.ts"
import { asksForLearnings } from "./asks.ts"

/** Each sentence that the rules learn from has one of these words; most messages that set work have none. */
const CUES = [
  "no+(?:pe)?|nah|not|never|always|(?:do|did|does|is|was|wo|have|should|must)n['’]?t|should",
  "wrong|incorrect|backwards|instead|rather|prefers?|preferences?|actually|stop|quit|avoid|tried|keep|kept",
  "said|told|asked|meant|wanted|want|like|love|hate|dislike|stand|let['’]?s|we['’]ll|will|us|go|going",
  "decision|decided|agreed|settled|opted|chose|picked|selected|dropping|migrating|moving|standardi[sz]ing|staying|sticking",
  "conventions?|styles?|rules?|polic(?:y|ys|ies)|standards?|guidelines?|structure|approach|layout|way|how|work(?:s|ed)",
  "patterns?|anti-?patterns?|bad|terrible|horrible|awful|dangerous|here|everywhere|this|now|future|general|default",
  "every|each|whenever|mind|aware|remember|note|fyi|record|heads|know|important|reminder|reason|turns",
  "generated|auto-?generated|code-?generated|vendored|read-?only|deprecated|frozen|legacy",
  "must|(?:has|have) to|needs?|cannot|can['’]?t|can only|you (?:have|need|are)|(?:before|after) (?:any|you)|ask|without",
  "english|german|french|spanish|(?:lower|upper|camel|pascal) ?case|(?:snake|kebab)[-_ ]?case|tense|imperative|verbs?|nouns?",
  "forbidden|prohibited|banned|off limits|taboo",
]
/** The same without accents for German, Spanish and French, whose users' messages have one in most sentences. */
const FOREIGN_CUES = [
  "nein|nee|ne|falsch|stopp?|halt|moment|nicht|nie|niemals|nirgends|immer|stets|grundsatzlich|ausnahmslos|kein\\w*",
  "statt|anstatt|anstelle|wir|ich|du|hier|uns|projekt|kunftig|zukunftig|zukunft|generell|standardmassig|ab (?:jetzt|sofort|heute)|von (?:jetzt|nun)",
  "jede[mnrs]?|nur|muss(?:en)?|soll(?:en|te|ten)?|durfen|darf|gehoren?|gehort|bekommen|braucht?|brauchen|ohne|ausser|bevor|solange",
  "englisch|deutsch|klein ?geschrieben|camelcase|kleinbuchstaben|imperativo?|bevorzuge|lieber|gern\\w*|vermeide?|verzichte?|verboten|erlaubt|untersagt|tabu",
  "wie|muster|vorbild|hore?|musst|sollst|solltest|hattest|entscheidung|generiert|erzeugt|autogeneriert|veraltet|lasst?",
  "nop|mal|incorrecto|para|espera|asi|eso|usamos|utilizamos|trabajamos|escribimos|hacemos|tienes|debes|hay|teneis|deberias|deja|hemos",
  "decidimos|acordamos|elegimos|optamos|quedamos|decidimos|vamos|seguimos|pasamos|migramos|usaremos|utilizaremos|adoptamos",
  "siempre|nunca|jamas|sin|nada|ningun|ninguna|prohibid[oa]s?|cero|partir|adelante|futuro|defecto|regla|norma|deben?|tienen?|van?|solo",
  "necesitan?|llevan?|ingles|espanol|minusculas?|mayusculas?|castellano|imperativo|presente|prefiero|quiero|gustan?|evita|permitid[oa]s?",
  "permite|puede|debe|pregunta|preguntame|consultame|generad[oa]s?|generan?|obsolet[oa]|vez|lugar|sino|excepcion|antes|despues|ahora",
  "non|nan|faux|attends?|pas|plutot|lieu|jamais|toujours|systematiquement|ici|nous|dois|devez|faut|devrais|devriez|aurais|fallait|arretez?",
  "on (?:reste|part|passe|garde|a|va|migre|adopte)|restons|partons|gardons|utilisons|passons|adoptons|decide|aucune?|rien|sans|zero|tant",
  "desormais|dorenavant|avenir|present|defaut|doivent|doit|seulement|uniquement|vont|va|mettent|besoin|anglais|francais|majuscules?|imperatif",
  "avant|apres|prefere|veux|souhaite|aime|evitez?|interdit(?:es?|s)?|autorise(?:es?|s)?|permis(?:es?)?|demandez?|generee?s?|obsoletes?|autogeneree?s?|la place|sauf|plus|regle|minuscules?",
]
const asWords = (cues: readonly string[]): RegExp => new RegExp(`\\b(?:${cues.join("|")})\\b`, "i")
const [CUE, FOREIGN_CUE] = [asWords(CUES), asWords([...CUES, ...FOREIGN_CUES])]
const HAN = /\p{Script=Han}/u

/** A cheap test that misses no message which teaches something (docs/adr/0003). */
export const mayTeach = (text: string): boolean => CUE.test(text) || HAN.test(text) || FOREIGN_CUE.test(foldText(text))

const DEADLINE_MS = 1_000
/** Shorter than the deadline, so that the tools can still be hidden when the learnings are late. */
const INJECT_DEADLINE_MS = 2_500
const MESSAGES_DEADLINE_MS = 2_600

const textsOf = (parts: readonly Part[]): string[] =>
  parts.flatMap((part) => (part.type === "text" && part.text.trim() !== "" ? [part.text] : []))

/** Session learning's hooks; they load the feature when there is something to learn or recall. */
export const createLearningHooks = (core: Core): Hooks => {
  const { projectRoot, input } = core
  const feature = core.feature("learning")
  const { log } = feature
  /** The parts of the message that a session's newest command expands to; the message does not come if the command fails. */
  const expanded = createLruMap<readonly Part[]>()

  const load = lazy(async () => {
    const [{ createLearningFeature }, services] = await Promise.all([import("./learning.ts"), core.services()])
    return createLearningFeature(core, services, log)
  })

  const hasLearned = (): boolean => load.current !== undefined || existsSync(join(stateRoot(projectRoot), "learning"))
  const loadIfLearned = async () => (hasLearned() ? load() : undefined)
  /** The user's own name for the project. */
  const isNamed = async (): Promise<boolean> =>
    (await import("../host/settings.ts")).mayHaveSetting(projectRoot, "project")
  /** For a session with a task. */
  const mayAgentsHaveLearned = async (sessionID: string): Promise<boolean> => {
    const services = await core.services.current
    return services?.tasks.cached(sessionID) !== undefined && services.ledger.mayHaveLearnings()
  }
  /** Something was learned here, in the main worktree, or under the user's own name for the project; or by agents, for a task. */
  const mayHaveLearnings = async (sessionID: string): Promise<boolean> =>
    hasLearned() ||
    statSync(join(input.worktree, ".git"), { throwIfNoEntry: false })?.isFile() === true ||
    (await mayAgentsHaveLearned(sessionID)) ||
    isNamed()
  const isTeaching = async (parts: readonly Part[]): Promise<boolean> => {
    if (!textsOf(parts).some(mayTeach)) return false
    // A message that sets a task teaches nothing, and need not wait for the rules.
    if (textsOf(parts).some((text) => text.includes("Task:"))) {
      const { setsTask } = await import("../task/parse.ts")
      if (setsTask(parts)) return false
    }
    return (await import("./detect.ts")).isTeaching(parts)
  }

  /** Each session's newest message, while it is examined: beside OpenCode's own work, and before the model is asked. */
  const examining = createLruMap<Promise<void>>()
  let newest: Promise<void> | undefined
  const examine = async (message: UserMessage, parts: readonly Part[]): Promise<void> => {
    // The feature is loaded for a message that teaches something or asks for learnings.
    const mayHave = await mayHaveLearnings(message.sessionID)
    const concerns = mayHave || textsOf(parts).some(asksForLearnings) || (await isTeaching(parts))
    if (concerns) await (await load())?.userMessage(message, parts)
  }

  let toolModule: typeof import("./tools.ts") | undefined
  const tools = feature.tools("learned and forget", () => toolModule?.createTools(load))

  const hook = <Input, Output>(name: keyof Hooks, decide: Parameters<typeof feature.hook<Input, Output>>[2]) =>
    feature.hook(name, DEADLINE_MS, decide)
  return {
    config: feature.config("learned and forget", async () => {
      toolModule = await import("./tools.ts")
    }),
    get tool() {
      return tools()
    },
    "command.execute.before": hook("command.execute.before", async ({ sessionID }, { parts }) => {
      expanded.set(sessionID, parts)
      return undefined
    }),
    "chat.message": hook("chat.message", async ({ sessionID }, { message, parts }) => {
      const template = expanded.get(sessionID)
      expanded.delete(sessionID)
      if (template && sharesText(template, parts)) return undefined
      // Other plugins may change the parts after this hook.
      const said = parts.map((part) => ({ ...part }))
      const before = examining.get(sessionID)
      newest = (async () => {
        await before
        await examine(message, said)
      })().catch((error: unknown) =>
        log.error("a message was not examined", { sessionID, messageID: message.id, error: describeError(error) }),
      )
      examining.set(sessionID, newest)
      return undefined
    }),
    "experimental.session.compacting": hook("experimental.session.compacting", async ({ sessionID }) => {
      await examining.get(sessionID)
      if (await mayHaveLearnings(sessionID)) (await load())?.compacting(sessionID)
      return undefined
    }),
    "experimental.chat.messages.transform": feature.hook(
      "experimental.chat.messages.transform",
      MESSAGES_DEADLINE_MS,
      async (_input, { messages }) => {
        const sessionID = messages[0]?.info.sessionID ?? ""
        const hide = (): void => toolModule?.disableLearningTools(messages)
        const inject = async () => {
          await examining.get(sessionID)
          return toolModule && (await mayHaveLearnings(sessionID)) ? (await load())?.beforeRequest(messages) : undefined
        }
        const decided = await withDeadline(inject(), INJECT_DEADLINE_MS)
        if (decided.kind === "done") return decided.value ?? hide
        const error = decided.kind === "failed" ? { error: describeError(decided.error) } : {}
        log.warn("a request goes without learnings", { sessionID, how: decided.kind, ...error })
        return hide
      },
      (_input, { messages }) => toolModule?.disableLearningTools(messages),
    ),
    event: feature.observer((event) => {
      switch (event.type) {
        case "session.idle": {
          const { sessionID } = event.properties
          return (examining.get(sessionID) ?? Promise.resolve())
            .then(() => load.current)
            .then((loaded) => loaded?.idle(sessionID))
        }
        case "session.status":
          if (event.properties.status.type === "idle") return undefined
          return load.current?.then((loaded) => loaded?.busy(event.properties.sessionID))
        case "session.updated":
          return loadIfLearned().then((loaded) => loaded?.updated(event.properties.info))
        case "session.deleted": {
          const { id } = event.properties.info
          expanded.delete(id)
          examining.delete(id)
          return loadIfLearned().then((loaded) => loaded?.forget(id))
        }
        default:
          return undefined
      }
    }),
    dispose: feature.dispose(async () => {
      await newest
      await (await load.current)?.stop()
    }),
  }
}
