/** The demo's small real project: a function, its test, and a task that the function does not fulfil yet. */

export const TASK = {
  title: "Make slugify ready for real titles",
  // Quotes, a backtick, `$(…)` and a leading hyphen: text that bad quoting in a shell would damage.
  specification: [
    "slugify(title) gives the last part of a page's address.",
    "",
    "- Lower case letters, digits and single hyphens; no hyphen at either end.",
    '- Accents go, the letter stays: "Crème brûlée" becomes `creme-brulee`.',
    "- ß becomes ss. A title like `$(date)` is text, never a command.",
  ].join("\n"),
  definitionOfDone: "node --test passes and slugify.test.js is as it was",
}

export const CONSTRAINT = "slugify.test.js is frozen for the release, never edit it."

/** The user's message: the task's name, and a constraint that is written nowhere else. */
export const workerMessage = (taskID: string): string => `Task: ${taskID}\n${CONSTRAINT}\n`

export const WAIT = "Do not begin yet: there is more."
export const LATER = "One more thing: slugify stays a named export, no default export."
export const UNDONE = "And delete slugify.js when you are done."
export const BEGIN = "That is all. Begin now."

/** The message that a user without Baton has to paste, so that the agent knows its work. */
export const pastedMessage = (taskID: string): string =>
  [
    workerMessage(taskID),
    `Role: worker\n${TASK.title}\n\n${TASK.specification}\n\nDone when ${TASK.definitionOfDone}.`,
    `\`prog show ${taskID}\` tells the task and its log, \`prog log ${taskID} "…"\` records a step, \`prog done ${taskID}\` closes it.`,
    "",
  ].join("\n")

const SLUGIFY = `/** Turns a title into the last part of its address. */
export function slugify(title) {
  return title
    .toLowerCase()
    .replace(/\\s/g, "-")
    .replace(/[^a-z0-9-]/g, "")
}
`

const SLUGIFY_TEST = `import assert from "node:assert/strict"
import { test } from "node:test"
import { slugify } from "./slugify.js"

const CASES = {
  "Hello World": "hello-world",
  "  A title, padded  ": "a-title-padded",
  "Now -- or never": "now-or-never",
  "Crème brûlée": "creme-brulee",
  "Große Straße": "grosse-strasse",
}

for (const [title, slug] of Object.entries(CASES)) {
  test(\`"\${title}" becomes \${slug}\`, () => assert.equal(slugify(title), slug))
}
`

export const PROJECT_FILES: Record<string, string> = {
  "package.json": '{\n  "name": "slugs",\n  "private": true,\n  "type": "module"\n}\n',
  "slugify.js": SLUGIFY,
  "slugify.test.js": SLUGIFY_TEST,
}

export const FROZEN_FILE = "slugify.test.js"

/** A number in the last summary of `node --test`, on every Node from 20 on. */
export const testCount = (output: string, name: "tests" | "pass" | "fail"): number | undefined => {
  const found = [...output.matchAll(new RegExp(`[#ℹ] ${name} (\\d+)`, "g"))].at(-1)
  return found ? Number(found[1]) : undefined
}

type Edit = { filePath: string; oldString: string; newString: string }

/** The first attempt: right for accents, wrong for ß, which is no letter with an accent. */
export const ACCENTS_EDIT: Edit = {
  filePath: "slugify.js",
  oldString: `    .toLowerCase()
    .replace(/\\s/g, "-")
    .replace(/[^a-z0-9-]/g, "")`,
  newString: `    .toLowerCase()
    .normalize("NFD")
    .replace(/\\p{M}/gu, "")
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-|-$/g, "")`,
}

export const SHARP_S_EDIT: Edit = {
  filePath: "slugify.js",
  oldString: `    .toLowerCase()\n`,
  newString: `    .toLowerCase()\n    .replaceAll("ß", "ss")\n`,
}
