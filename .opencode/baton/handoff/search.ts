import { printableLine } from "../host/cli.ts"
import type { SessionMessages, StoredSession } from "../host/opencode-database.ts"
import { redactedLine } from "../host/secrets.ts"
import { excerptAround } from "../host/words.ts"
import type { LedgerText } from "../ledger/ledger-texts.ts"
import type { HandoffRecord } from "./records.ts"
import { renderMessage, type ToolDetail } from "./transcript.ts"

type Found = {
  /** The id of the session, task or handoff. */
  readonly id: string
  readonly title: string
  /** ISO 8601. */
  readonly date: string
  readonly excerpt: string
  /** The command, or the agent's call, that reads more. */
  readonly read: string
}

/** One place where all words are. A line of `baton search --json`; docs/handoff.md has its form. */
export type Hit =
  | (Found & { readonly where: "session"; readonly message: string; readonly by: Speaker })
  | (Found & { readonly where: "task"; readonly status: string; readonly part: "task" | "log" })
  | (Found & {
      readonly where: "handoff"
      readonly from: string
      readonly to: readonly string[]
      readonly task?: string
    })

/** More of one session, task or handoff would hide the others. */
const MAX_OF_ONE = 3
const TITLE_CHARACTERS = 100

type Query = {
  /** From `splitWords`. */
  readonly words: readonly string[]
  /** As they were typed. */
  readonly typed: string
  /** The most hits of each kind. */
  readonly limit: number
}

const isoDate = (at: number): string => new Date(at).toISOString()

const titleOf = (text: string): string => printableLine(redactedLine(text, TITLE_CHARACTERS))

type Dated = { readonly id: string; readonly at: number }

type Match<T> = { readonly of: T; readonly at: number; readonly excerpt: string }

/** Reads on until there are as many matches as are wanted. @param newestFirst is read no further than that */
const firstMatches = <T extends Dated>(
  newestFirst: Iterable<T>,
  textOf: (one: T) => string,
  { words, limit }: Pick<Query, "words" | "limit">,
): Match<T>[] => {
  const found: Match<T>[] = []
  const counts = new Map<string, number>()
  for (const one of newestFirst) {
    const count = counts.get(one.id) ?? 0
    if (count >= MAX_OF_ONE) continue
    const excerpt = excerptAround(textOf(one), words)
    if (excerpt === undefined) continue
    counts.set(one.id, count + 1)
    found.push({ of: one, at: one.at, excerpt })
    if (found.length >= limit) break
  }
  return found
}

const newestOf = <T>(all: readonly Match<T>[], limit: number): Match<T>[] =>
  all.toSorted((one, other) => other.at - one.at).slice(0, limit)

type Speaker = "user" | "agent" | "assistant"

/** @param heading of the message in a transcript */
const speakerOf = (heading: string, { isChild }: StoredSession): Speaker => {
  if (heading === "## User") return isChild ? "agent" : "user"
  return heading === "## Another agent" ? "agent" : "assistant"
}

type Said = Dated & {
  readonly session: StoredSession
  readonly message: string
  readonly by: Speaker
  readonly text: string
}

function* saidIn({ session, messages }: SessionMessages, detail: ToolDetail): Generator<Said> {
  for (const { at, message } of messages()) {
    const [heading = "", ...lines] = (renderMessage(message, detail) ?? "").split("\n")
    yield {
      id: session.id,
      at,
      session,
      message: message.info.id,
      by: speakerOf(heading, session),
      text: lines.join("\n"),
    }
  }
}

/** @param sessions the last used first: older ones are not read once they can have no newer match */
export const searchSessions = (
  sessions: readonly SessionMessages[],
  { words, typed, limit }: Query,
  detail: ToolDetail,
): Hit[] => {
  let found: Match<Said>[] = []
  for (const one of sessions) {
    if (found.length >= limit && (found.at(-1)?.at ?? 0) >= one.session.updatedAt) break
    const own = firstMatches(saidIn(one, detail), ({ text }) => text, { words, limit: MAX_OF_ONE })
    found = newestOf([...found, ...own], limit)
  }
  return found.map(({ of: { session, message, by }, at, excerpt }) => {
    const asked = JSON.stringify({ sessionID: session.id, words: typed, any: true })
    const read = session.hasTool ? `read_session ${asked}` : `opencode --session ${session.id}`
    return {
      where: "session",
      id: session.id,
      title: titleOf(session.title),
      date: isoDate(at),
      message,
      by,
      excerpt,
      read,
    }
  })
}

/** @param texts each the newest first */
export const searchLedger = (texts: readonly Iterable<LedgerText>[], { words, limit }: Query): Hit[] => {
  const found = texts.flatMap((newestFirst) => firstMatches(newestFirst, ({ text }) => text, { words, limit }))
  return newestOf(found, limit).map(({ of: { id, title, status, part }, at, excerpt }) => {
    return {
      where: "task",
      id,
      title: titleOf(title),
      date: isoDate(at),
      status,
      part,
      excerpt,
      read: `prog show ${id}`,
    }
  })
}

/** @param records oldest first */
export const searchHandoffs = (records: readonly HandoffRecord[], { words, limit }: Query): Hit[] => {
  const newestFirst = records
    .map((record) => ({ id: record.id, at: Date.parse(record.createdAt), record }))
    .toReversed()
  return firstMatches(newestFirst, ({ record }) => record.draft, { words, limit }).map(({ of, excerpt }) => {
    const { id, createdAt: date, from, arrivals, goal, taskID } = of.record
    const to = arrivals.map(({ sessionID }) => sessionID)
    const task = taskID === undefined ? {} : { task: taskID }
    return {
      where: "handoff",
      id,
      title: titleOf(goal),
      date,
      from,
      to,
      ...task,
      excerpt,
      read: `baton handoffs --draft ${id}`,
    }
  })
}
