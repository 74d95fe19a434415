import { type TaskWords, toUserWords, type UserWords } from "../../.opencode/baton/task/user-words.ts"

/** The user's words in a message, as `toUserWords` makes them. @param second since 2026-01-01 00:00 UTC */
export const userWords = (text: string, second = 0, sessionID = "ses_1", messageID = `msg_${second}`): UserWords => {
  const createdAt = Date.parse("2026-01-01T00:00:00.000Z") + second * 1_000
  const words = toUserWords({ sessionID, messageID, createdAt, text })
  if (!words) throw new Error(`expected a message with words of the user's, received ${JSON.stringify(text)}`)
  return words
}

/** The user's words on a task, the oldest first, a second apart. */
export const taskWords = (...texts: string[]): TaskWords => ({
  words: texts.map((text, second) => userWords(text, second)),
  leftOut: 0,
})
