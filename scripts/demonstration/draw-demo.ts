import { readFileSync } from "node:fs"
import { atPrompt, renderTerminal, writePicture } from "./terminal-picture.ts"

/** draw-demo.ts COMMAND OUTPUT SVG: draws a command with its coloured output, read from a file. */
const [command, output, picture] = process.argv.slice(2)
if (!command || !output || !picture) throw new Error("expected COMMAND OUTPUT SVG; start it with ./scripts/picture")

writePicture(picture, renderTerminal(`The output of ${command}`, atPrompt(command, readFileSync(output, "utf8"))))
