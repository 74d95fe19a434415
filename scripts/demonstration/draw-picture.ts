import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs"
import { dirname } from "node:path"
import { renderTerminalPicture } from "./terminal-picture.ts"

/** draw-picture.ts COMMAND OUTPUT SVG: the picture of a command whose coloured output stands in a file. */
const [command, output, picture] = process.argv.slice(2)
if (!command || !output || !picture) throw new Error("expected COMMAND OUTPUT SVG; start it with ./scripts/picture")

mkdirSync(dirname(picture), { recursive: true })
writeFileSync(`${picture}.tmp`, renderTerminalPicture(command, readFileSync(output, "utf8")))
renameSync(`${picture}.tmp`, picture)
