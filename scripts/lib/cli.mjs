#!/usr/bin/env node
// @ts-check
/** `npx baton-opencode COMMAND`: the package's command. Installs by install.mjs; the rest is what `bin/baton` does. */
import { spawn } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"
import { runInstaller } from "./install.mjs"
import { quoted } from "./install-output.mjs"
import { firstMessage } from "./install-plan.mjs"
import { adviseOnOpenCode } from "./opencode.mjs"

const PACKAGE = fileURLToPath(new URL("../../", import.meta.url))
const BATON = join(PACKAGE, ".opencode", "baton", "bin", "baton")

const USAGE = `Usage: npx baton-opencode COMMAND

Commands:
  init [DIR | --global]       put Baton into a project (default: this folder), or into OpenCode's global folder
                              --no-auto-task, --no-pass-over: without these two, also later; --auto-task and --pass-over
                              put them back; --take-over: files that are there are yours
  update [DIR | --global]     bring it to this version, keep what you changed and show the difference
  uninstall [DIR | --global]  take it out again; --purge: its records too
                              each with --dry-run: only say what would be done
  doctor [DIR]                look for what is broken and say how to fix it

`

/** The installer's own arguments for a command. */
const INSTALLER = new Map([
  ["init", []],
  ["update", ["--update"]],
  ["uninstall", ["--uninstall"]],
])

const PROG = ".opencode/baton/bin/prog"

/** @typedef {import("./install-plan.mjs").Choices} Choices */
/** @typedef {import("./install-plan.mjs").Work} Work */

/**
 * Asks at most two questions, on a terminal alone; Enter says yes, and so does what is not a terminal.
 * @param {Choices} given by options @param {boolean} isAsking @returns {Promise<Choices>}
 */
const choose = async ({ autoTask, passOver }, isAsking) => {
  if (!isAsking || !process.stdin.isTTY || !process.stdout.isTTY) return { autoTask, passOver }
  const terminal = createInterface({ input: process.stdin, output: process.stdout })
  terminal.on("SIGINT", () => process.exit(130))
  const lines = terminal[Symbol.asyncIterator]()
  const ask = async (/** @type {string} */ question) => {
    process.stdout.write(`${question} [Y/n] `)
    const { value, done } = await lines.next()
    if (done) process.exit(130)
    return !/^\s*n/i.test(value)
  }
  const chosen = {
    autoTask:
      autoTask &&
      (await ask(`Baton keeps what a session is about, its task, when the session is compacted, ends or crashes.
Make your first message the task, where you name none?`)),
    passOver:
      passOver &&
      (await ask(`With the tool pass_over an agent has another one do or review a piece of work, in a copy of the files.
Let agents pass work to other agents? You approve what comes back.`)),
  }
  terminal.close()
  return chosen
}

/** @param {Work} work @returns {string[]} what a user does next, a line each */
const nextSteps = ({ project, isGlobal, plan }) => {
  const folder = isGlobal ? "my-project" : quoted(project)
  const prog = isGlobal ? quoted(plan.at(PROG)) : PROG
  return [
    `cd ${folder} && opencode`,
    firstMessage(plan)[0] ?? `${prog} add "TITLE" prints an ID; begin a message with the line: Task: ID`,
    `npx baton-opencode doctor ${folder}`,
  ]
}

/** @param {string} command @param {string[]} args @returns {Promise<number>} the exit code */
const install = async (command, args) => {
  const advice = command === "uninstall" ? [] : adviseOnOpenCode()
  const advise = async () => {
    for (const line of (await advice).splice(0)) console.log(line)
  }
  const given = { autoTask: !args.includes("--no-auto-task"), passOver: !args.includes("--no-pass-over") }
  const isPlaced = args.some((argument) => argument === "--global" || !argument.startsWith("-"))
  const exitCode = await runInstaller([...(INSTALLER.get(command) ?? []), ...args, ...(isPlaced ? [] : ["."])], {
    command: `npx baton-opencode ${command}`,
    choose: (isAsking) => choose(given, isAsking),
    next: async (work) => {
      await advise()
      return nextSteps(work)
    },
  })
  await advise()
  return exitCode
}

/** The commands of `bin/baton` below its own heading, and its last line about --help. */
const batonCommands = () => {
  const [, commands = ""] = /^Commands:\n(?: {2}doctor .*\n)?([\s\S]*?)^TEXT$/m.exec(readFileSync(BATON, "utf8")) ?? []
  return commands.trimEnd()
}

/**
 * Runs `bin/baton`, which finds a runtime. It may find Node, which reads no TypeScript below node_modules without help.
 * @param {string[]} args @returns {Promise<number>} the exit code
 */
const runBaton = (args) =>
  new Promise((resolve) => {
    const preload = `--import=${new URL("./read-typescript.mjs", import.meta.url).href}`
    const options = [process.env.NODE_OPTIONS, preload].filter(Boolean).join(" ")
    const child = spawn("sh", [BATON, ...args], {
      stdio: "inherit",
      env: { ...process.env, NODE_OPTIONS: options },
    })
    // A terminal sends Ctrl-C to both; this process waits for the other's end.
    process.on("SIGINT", () => {})
    for (const signal of /** @type {const} */ (["SIGTERM", "SIGHUP"])) process.on(signal, () => child.kill(signal))
    child.on("error", (error) => {
      console.error(`baton-opencode: ${args[0]} needs a POSIX shell, and 'sh' does not start: ${error.message}`)
      resolve(1)
    })
    child.on("exit", (code) => resolve(code ?? 1))
  })

const [command = "", ...args] = process.argv.slice(2)
const isAskingForHelp = args.some((argument) => argument === "--help" || argument === "-h")
if (command === "--version" || command === "-v") {
  console.log(JSON.parse(readFileSync(join(PACKAGE, "package.json"), "utf8")).version)
} else if (["", "--help", "-h", "help"].includes(command) || (INSTALLER.has(command) && isAskingForHelp)) {
  console[command === "" ? "error" : "log"](USAGE + batonCommands())
  if (command === "") process.exitCode = 2
} else if (INSTALLER.has(command)) {
  process.exitCode = await install(command, args)
} else {
  process.exitCode = await runBaton([command, ...args])
}
