/**
 * `learning-lookup.ts LEARNINGS ROUNDS`: prints in ms the time of a look-up among so many learnings, of reading their copy, and
 * of checking one message.
 */
import { detect } from "../../../.opencode/baton/learning/detect.ts"
import { chooseLearnings } from "../../../.opencode/baton/learning/fitting.ts"
import { type KnownLearning, lookUpBy } from "../../../.opencode/baton/learning/known.ts"
import { renderLearnings } from "../../../.opencode/baton/learning/recall.ts"
import { LEARNING_TYPES } from "../../../.opencode/baton/learning/signals.ts"
import { interleave } from "../measure.ts"

const [learnings = "", rounds = ""] = process.argv.slice(2)
const SUBJECTS = "parser lexer formatter router cache queue mailer invoice login upload search report theme".split(" ")
const MESSAGE = "Make the parser read CRLF; src/lexer/module17.ts has to keep its tests. No, use the router instead."
const subject = (at: number): string => SUBJECTS[at % SUBJECTS.length] ?? ""

const made = Array.from({ length: Number(learnings) }, (_, at): KnownLearning => {
  const sentence = `No, use module${at} for the ${subject(at)} instead of the shared helper in the ${subject(at * 7 + 3)}.`
  const type = LEARNING_TYPES[at % LEARNING_TYPES.length] ?? "insight"
  return {
    id: `lrn-${at.toString(16).padStart(6, "0")}`,
    key: at.toString(16).padStart(12, "0"),
    folder: "/project",
    by: "user",
    type,
    ...lookUpBy(sentence, type),
    files: [`src/${subject(at)}/module${at}.ts`],
    at: new Date(Date.UTC(2026, 0, 1) + at * 60_000).toISOString(),
    times: 1 + (at % 3),
    messageIDs: [`msg_${at.toString(16).padStart(26, "0")}`],
    confirmed: at % 2 === 0,
    status: at % 10 === 9 ? "replaced" : "active",
  }
})
const copy = JSON.stringify(made)
const timed = (work: () => unknown) => (): number => {
  const started = performance.now()
  work()
  return performance.now() - started
}
const subjects = {
  lookup: timed(() => renderLearnings(chooseLearnings(made, MESSAGE, Date.UTC(2026, 6, 1)))),
  copy: timed(() => JSON.parse(copy)),
  look: timed(() => detect(MESSAGE)),
}
console.log(JSON.stringify(await interleave(subjects, Number(rounds))))
process.exit(0)
