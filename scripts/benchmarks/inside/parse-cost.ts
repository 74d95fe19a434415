/** `parse-cost.ts SHAPE CHARACTERS`: prints what parsing one hostile text costs in this fresh process, in ms. */
import { parseReferences } from "../../../.opencode/baton/handoff/reference.ts"
import { HOSTILE_TEXTS } from "./hostile-texts.ts"

const [shape = "", characters = ""] = process.argv.slice(2)
const hostile = HOSTILE_TEXTS.find(({ id }) => id === shape)
if (!hostile) throw new Error(`expected one of ${HOSTILE_TEXTS.map(({ id }) => id).join(", ")}, received ${shape}`)
const text = hostile.make(Number(characters))
const started = performance.now()
const { length: references } = parseReferences(text)
const ms = performance.now() - started
console.log(JSON.stringify({ ms, references }))
process.exit(0)
