import { readFileSync } from "node:fs"
import { renderTerminalPicture } from "./terminal-picture.ts"
import { writePicture } from "./write-picture.ts"

/** draw-picture.ts COMMAND OUTPUT SVG: the picture of a command whose coloured output stands in a file. */
const [command, output, picture] = process.argv.slice(2)
if (!command || !output || !picture) throw new Error("expected COMMAND OUTPUT SVG; start it with ./scripts/picture")

writePicture(picture, renderTerminalPicture(command, readFileSync(output, "utf8")))
