import { createRecentMap, withDeadline } from "../host/async.ts"
import { describeError, type Log } from "../host/log.ts"
import { findCompletedCompaction, keepsPriorSummary } from "../host/messages.ts"
import type { Sessions, StoredMessage } from "../host/sessions.ts"
import type { CompactionJournal } from "./journal.ts"

export type PriorSummaries = {
  /**
   * Begins the search that `find` would have to wait for, and ends it as soon as it is no longer needed.
   *
   * @param isOver asked before each page
   */
  prepare(sessionID: string, isOver: () => boolean): void
  /**
   * The summary that the new one must carry over: the newest with a text, in full. Called from the compacting hook.
   *
   * @param turnSeen whether this process has seen a turn of the session: a turn shows every summary there is, so that
   *   only a session resumed right into its compaction has to be searched
   * @param isBehindAnother whether no turn has come since the last compaction, whose summary need not be recorded yet
   *   (1.14 often compacts twice in a row)
   * @returns undefined when there is none, or when this OpenCode shows the very same one to the summariser itself
   */
  find(
    sessionID: string,
    journal: CompactionJournal,
    options: { turnSeen: boolean; isBehindAnother: boolean },
  ): Promise<string | undefined>
  forget(sessionID: string): void
}

const PAGE_MESSAGES = 50
/** Between two compactions in a row there are the summary, a message to go on, and the next request. */
const BEHIND_MESSAGES = 10
const MAX_PAGES = 10
const SEARCH_DEADLINE_MS = 700

export const createPriorSummaries = ({
  sessions,
  log,
}: {
  sessions: Pick<Sessions, "messages">
  log: Log
}): PriorSummaries => {
  const readNewest = async (sessionID: string, count: number): Promise<readonly StoredMessage[]> => {
    const newest = await sessions.messages(sessionID, count)
    if (newest.kind === "answer") return newest.value.messages
    const { reason } = newest
    log.warn("newest messages unknown: the prior summary is carried over in any case", { sessionID, reason })
    return []
  }

  const searches = createRecentMap<Promise<string | undefined>>()

  const search = async (sessionID: string, isOver: () => boolean): Promise<string | undefined> => {
    let cursor: string | undefined
    for (let page = 0; page < MAX_PAGES && !isOver(); page++) {
      const answer = await sessions.messages(sessionID, PAGE_MESSAGES, cursor)
      if (answer.kind === "failed") return undefined
      const found = findCompletedCompaction(answer.value.messages)
      if (found) return found.summary
      if (answer.value.older === undefined) return undefined
      cursor = answer.value.older
    }
    return undefined
  }

  const searchOnce = (sessionID: string, isOver: () => boolean): Promise<string | undefined> => {
    const started = searches.get(sessionID) ?? search(sessionID, isOver)
    searches.set(sessionID, started)
    return started
  }

  return {
    prepare: (sessionID, isOver) => {
      searchOnce(sessionID, isOver).catch((error: unknown) =>
        log.warn("search for a prior summary failed", { sessionID, error: describeError(error) }),
      )
    },
    find: async (sessionID, journal, { turnSeen, isBehindAnother }) => {
      const recorded = journal.lastHandoff
      if (!isBehindAnother && !recorded && (turnSeen || journal.count > 0)) return undefined
      const newest = await readNewest(sessionID, isBehindAnother ? BEHIND_MESSAGES : 1)
      const isVisible = keepsPriorSummary(newest)
      const before = isBehindAnother ? findCompletedCompaction(newest) : undefined
      const last = before && before.summary !== "" ? { summaryID: before.summaryID, text: before.summary } : recorded
      if (last) {
        const newestID = before?.summaryID ?? journal.recorded.at(-1)
        if (!isVisible || newestID !== last.summaryID) return last.text
        log.debug("the conversation still shows the prior summary", { sessionID })
        return undefined
      }
      if (isVisible) return undefined
      const searched = await withDeadline(
        searchOnce(sessionID, () => false),
        SEARCH_DEADLINE_MS,
      )
      return searched.kind === "done" && searched.value !== "" ? searched.value : undefined
    },
    forget: (sessionID) => {
      searches.delete(sessionID)
    },
  }
}
