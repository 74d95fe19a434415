import { readFileSync } from "node:fs"
import { join, relative } from "node:path"
import { describe, expect, test } from "vitest"
import { renderDraft } from "../../../.opencode/baton/handoff/draft.ts"
import { renderMessage } from "../../../.opencode/baton/handoff/transcript.ts"
import { pathsToWrite } from "../../../.opencode/baton/host/messages.ts"
import { matches } from "../../../.opencode/baton/host/permissions.ts"
import { isSecretPath } from "../../../.opencode/baton/host/project-file.ts"
import { oneLine, quoted, untrusted } from "../../../.opencode/baton/host/quoted.ts"
import { chooseLearnings, searchLearnings } from "../../../.opencode/baton/learning/fitting.ts"
import type { KnownLearning } from "../../../.opencode/baton/learning/known.ts"
import { mergeHandoff } from "../../../.opencode/baton/ledger/description.ts"
import { pathWithoutSecrets } from "../../../.opencode/baton/task/activity.ts"
import { nearestNames } from "../../../.opencode/baton/task/parse.ts"
import { toUserWords } from "../../../.opencode/baton/task/user-words.ts"
import { promised } from "../../requirements.ts"
import { runs } from "../../support/effort.ts"
import { sourceFiles } from "../../support/files/source-files.ts"
import { growthBeyondText, HOSTILE } from "../../support/growth.ts"
import { REPOSITORY } from "../../support/opencode/opencode-binary.ts"
import { testRandom } from "../../support/test-random.ts"
import { textPart, userMessage } from "../../support/unit.ts"

const BUNDLE = ".opencode/baton"

/** A function, not async, that is exported and takes a string first. */
const TEXT_FUNCTION = /^export const (\w+) = (?:<[^>]*>)?\(\s*(\w+): (?:Untrusted \| )?string\b/gm
/** Names of first parameters that are no text from outside: names, places, Baton's own words. */
const OTHERS =
  /^(?:path|projectRoot|folder|directory|root|start|project|name|id|sessionID|taskID|passID|tool|file|cause|task|status|version|configuration|database|host|target|index|top|reason|mark|step|character)$/

/** They write to the terminal. */
const WRITING = ["host/cli.ts print", "host/cli.ts complain"]

const PATHS = { root: "/sandbox", source: "/project", directory: "/project", worktree: "/project" }

/** The arguments behind the text, for a function that takes more than one. */
const MORE: Readonly<Record<string, readonly unknown[]>> = {
  "compaction/summary.ts isRefusal": [""],
  "doctor/checks/opencode.ts checkVersion": ["/usr/bin/opencode"],
  "doctor/report.ts warning": [""],
  "doctor/report.ts broken": [""],
  "host/secrets.ts redactedLine": [200],
  "host/text.ts cutText": [200],
  "host/text.ts cutTextStart": [200],
  "host/text.ts shorten": [200],
  "host/text.ts fitWidth": [200],
  "host/words.ts hasWords": [["WORD", "ANOTHER"]],
  "host/words.ts excerptAround": [["WORD", "ANOTHER"]],
  "learning/known.ts lookUpBy": ["correction"],
  "learning/words.ts contradicts": ["Always use tabs."],
  "ledger/description.ts takeBytes": [4_000],
  "ledger/description.ts mergeHandoff": ["## Handoff"],
  "ledger/embedded/command-tree.ts fail": [[]],
  "ledger/embedded/format.ts padRight": [20],
  "ledger/embedded/format.ts padLeft": [20],
  "ledger/embedded/items.ts deriveEpicStatus": [["open"]],
  "pass-over/session-hooks.ts withoutCommands": [false],
  "pass-over/sandbox/paths.ts spellOutHome": ["/home/a", PATHS],
  "pass-over/sandbox/paths.ts toSandboxText": [PATHS],
  "pass-over/sandbox/paths.ts toProjectText": ["/sandbox"],
  "task/naming.ts tasksTakenUp": [false],
  "task/parse.ts fenceAfter": [""],
  "task/parse.ts namesTask": ["ts-abcdef"],
  "task/prompts.ts fillTaskID": ["ts-abcdef"],
  "task/prompts.ts extractProtocol": [{ taskID: "ts-abcdef" }],
  "work/options.ts lastClock": [0],
}

const load = async (path: string): Promise<Record<string, unknown>> => import(join(REPOSITORY, BUNDLE, path))

const foundIn = (path: string): string[] =>
  [...readFileSync(join(REPOSITORY, path), "utf8").matchAll(TEXT_FUNCTION)].flatMap(([, name = "", first = ""]) =>
    OTHERS.test(first) ? [] : [`${relative(BUNDLE, path)} ${name}`],
  )
const found = sourceFiles(BUNDLE).flatMap(foundIn)

type Run = (text: string) => unknown

const LEARNING: KnownLearning = {
  ...{
    id: "lrn-000001",
    key: "tabs",
    folder: "/project",
    by: "user",
    type: "correction",
    sentence: "Always use tabs.",
  },
  ...{ words: ["tab"], weight: 1, concepts: [], reach: "subject", files: [], at: "2026-01-01T00:00:00.000Z", times: 1 },
  ...{ messageIDs: [], confirmed: true, status: "active" },
}

/** The text is not the first argument, is within something, or is a path that a model writes. */
const WITHIN: Readonly<Record<string, Run>> = {
  "host/messages.ts pathsToWrite": (patchText) => pathsToWrite("apply_patch", { patchText }),
  "host/permissions.ts matches": (text) => matches(text, "src/**/*.ts"),
  "host/project-file.ts isSecretPath": isSecretPath,
  "host/quoted.ts oneLine": (text) => oneLine(untrusted(text)),
  "host/quoted.ts quoted": (text) => quoted(untrusted(text)),
  "handoff/draft.ts renderDraft": (text) =>
    renderDraft({ sessionID: "ses_a", files: [{ path: text }], goal: text, prompt: text, facts: text }),
  "handoff/transcript.ts renderMessage": (text) => renderMessage(userMessage([textPart(text)]), "full"),
  "learning/fitting.ts chooseLearnings": (text) => chooseLearnings([LEARNING], text, 0),
  "learning/fitting.ts searchLearnings": (text) => searchLearnings([LEARNING], text, { now: 0, limit: 5 }),
  "ledger/description.ts mergeHandoff": (text) => mergeHandoff("A specification.", text, { maxBytes: 100_000 }),
  "task/activity.ts pathWithoutSecrets": pathWithoutSecrets,
  "task/parse.ts nearestNames": (text) => nearestNames(text, ["ts-abcdef"]),
  "task/user-words.ts toUserWords": (text) =>
    toUserWords({ sessionID: "ses_a", messageID: "msg_a", createdAt: 0, text }),
}

const tried = found.filter((name) => !WRITING.includes(name) && !(name in WITHIN))

/** @throws where it was called wrongly; a text that it refuses is an answer */
const refusing =
  (run: Run): Run =>
  (text) => {
    try {
      return run(text)
    } catch (error) {
      if (error instanceof TypeError || error instanceof RangeError) throw error
      return undefined
    }
  }

const opened = async (name: string): Promise<Run> => {
  const [path = "", exported = ""] = name.split(" ")
  const run = (await load(path))[exported]
  if (typeof run !== "function") throw new Error(`expected a function ${name}, received ${typeof run}`)
  const more = MORE[name] ?? []
  if (run.length > 1 + more.length) throw new Error(`${name} takes ${run.length} arguments: say them in MORE`)
  return refusing((text) => run(text, ...more))
}

const shuffled = <Value>(values: readonly Value[], random: () => number): Value[] =>
  values
    .map((value) => ({ value, place: random() }))
    .sort((one, other) => one.place - other.place)
    .map(({ value }) => value)

/** So many characters that the square of them is far beyond the limit on a fast machine, too. */
const SMALL = 30_000
const MOST_FINDINGS = 3
/** By day each function gets some of the texts, at night all. */
const TEXTS_BY_DAY = 24
/** It bounds nothing: a busy machine may take minutes for a function that looks at much. */
const DEADLINE_MS = 600_000

const beyondText = (run: Run): string[] => {
  const found: string[] = []
  for (const growing of shuffled(HOSTILE, testRandom()).slice(0, runs(TEXTS_BY_DAY))) {
    const beyond = growthBeyondText(run, growing)
    if (beyond !== undefined) found.push(`${growing.name}, ${beyond}`)
    if (found.length === MOST_FINDINGS) break
  }
  return found
}

describe("a text that an attacker or a model wrote", () => {
  test.each(tried)(
    promised("people.C1", "%s takes at most its share of time longer for a longer text"),
    async (name) => {
      expect(beyondText(await opened(name))).toEqual([])
    },
    DEADLINE_MS,
  )

  test.each(Object.keys(WITHIN))(
    promised("people.C1", "%s within other things takes at most its share of time longer for a longer text, too"),
    (name) => {
      expect(beyondText(refusing(WITHIN[name] ?? String))).toEqual([])
    },
    DEADLINE_MS,
  )

  test(promised("people.C1", "every function that takes a text is tried, and no other is named"), () => {
    expect(tried.length).toBeGreaterThan(80)
    const named = [...WRITING, ...Object.keys(MORE)]
    expect(named.filter((name) => !found.includes(name))).toEqual([])
  })

  test(
    promised("people.C1", "a function that takes the square of a text's length is found"),
    () => {
      const tried = (part: string) =>
        HOSTILE.find(({ name }) => name === JSON.stringify(part)) ?? { name: part, at: String }
      const isFound = (expression: RegExp, part: string) =>
        growthBeyondText((text) => expression.test(`${text}x`), tried(part), SMALL) !== undefined
      expect([isFound(/[.!:]+$/, "!"), isFound(/(?:a-)+!/, "a-"), isFound(/^\s*a|\s+$/, " ")]).toEqual([
        true,
        true,
        true,
      ])
      expect([isFound(/(?<![.!:])[.!:]+$/, "!"), isFound(/^!*$/, "!")]).toEqual([false, false])
    },
    DEADLINE_MS,
  )
})
