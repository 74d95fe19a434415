/** `baton trust writer`. Exits with 0, with 1 when there is no writer to allow, with 2 for a wrong command line. */
import { parseArgs } from "node:util"
import { chooseProject, complain, print, runCommand } from "../host/cli.ts"
import { createConsent } from "../host/consent.ts"
import { describeError } from "../host/log.ts"
import { readSettings, SETTINGS_FILE } from "../host/settings.ts"

const FAILED_EXIT_CODE = 1

const parse = (args: readonly string[], here: string) => {
  const options = { revoke: { type: "boolean", default: false } } as const
  const { values, positionals } = parseArgs({ args: [...args], allowPositionals: true, options })
  const [directory, ...rest] = positionals
  if (rest.length > 0) throw new Error(`expected one project folder, received ${positionals.length}`)
  return { revoke: values.revoke, root: chooseProject(directory, here) }
}

const run = async ({ revoke, root }: ReturnType<typeof parse>): Promise<number> => {
  const { writer } = (await readSettings(root)).settings.liveState
  if (writer === undefined) {
    complain(`trust: there is no liveState.writer in ${root}/${SETTINGS_FILE}`)
    return FAILED_EXIT_CODE
  }
  try {
    createConsent(root)[revoke ? "revoke" : "allow"](writer)
  } catch (error) {
    complain(`trust: nothing is changed for ${JSON.stringify(writer)}: ${describeError(error)}`)
    return FAILED_EXIT_CODE
  }
  print(`${revoke ? "Not allowed" : "Allowed"} in ${root}, from OpenCode's next start on: ${JSON.stringify(writer)}`)
  return 0
}

await runCommand({ name: "trust", parse, run })
