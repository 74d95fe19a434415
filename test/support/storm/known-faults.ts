import { mkdirSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { FOREIGN_PROG, HANGING_LEDGERS, LEDGER_FAULTS, pathWithFakeProg } from "../fault-ledger-table.ts"
import { MACHINE_FAULTS, type MachineFault } from "../fault-machine-table.ts"
import type { Fault } from "../fault-sequence.ts"
import { DAMAGES, damageState, stateFolder } from "../fault-stored-table.ts"
import { clientFault, PROJECT_FAULTS } from "../fault-table.ts"
import type { TaskProject } from "../task-project.ts"
import type { StormFault } from "./storm-fault.ts"

/** A `prog` on PATH that works: the launcher of the project's own bundle under that name. */
const putWorkingProgram = ({ project, binary }: TaskProject): void => {
  const folder = join(project.home, "programs")
  const launcher = join(project.directory, ".opencode", "baton", "bin", "prog")
  mkdirSync(folder, { recursive: true })
  rmSync(join(folder, "prog"), { force: true })
  const call = `BATON_LEDGER=embedded BATON_RUNTIME='${binary.path}' exec '${launcher}' "$@"`
  writeFileSync(join(folder, "prog"), `#!/bin/sh\n${call}\n`, { mode: 0o755 })
}

const ledgerFault = (fault: Fault): StormFault => ({
  name: fault.name,
  slots: ["prog"],
  when: "any",
  prepare: ({ task }) => putWorkingProgram(task),
  arrange: ({ task }) => fault.arrange(task),
  lift: ({ task }) => putWorkingProgram(task),
  options: { environment: (task) => ({ PATH: pathWithFakeProg(task), BATON_LEDGER: "real" }) },
  refuses: "ledger",
})

const named = new Map([...LEDGER_FAULTS, ...HANGING_LEDGERS].map((fault) => [fault.name, fault]))

const FOREIGN: StormFault = {
  name: FOREIGN_PROG.name,
  slots: ["prog"],
  when: "start",
  arrange: ({ task }) => FOREIGN_PROG.arrange(task),
  options: { environment: (task) => ({ PATH: pathWithFakeProg(task), BATON_LEDGER: "" }) },
}

/** Two faults of one file, or of one call of the client, cannot stand at once. */
const slotOf = ({ name }: Fault): string => name.split(" ")[0] ?? name

const projectFault = (fault: Fault): StormFault => ({
  name: fault.name,
  slots: [slotOf(fault)],
  when: "any",
  arrange: ({ task }) => {
    if (slotOf(fault) === ".opencode/state") mkdirSync(stateFolder(task, ""), { recursive: true })
    fault.arrange(task)
  },
  lift: ({ task }) => fault.lift(task),
  ...(slotOf(fault) === ".opencode/state" ? { refuses: "disk" as const } : {}),
})

const machineSlots = (fault: MachineFault): string[] => {
  if (fault.options?.launcher !== undefined || fault.name === "the disk is full") return [".opencode/state"]
  // The folder of programs becomes the whole PATH.
  if (fault.name === "git is missing") return ["git", "prog"]
  return [fault.options?.project?.git === false ? "git" : slotOf(fault)]
}

const machineFault = (fault: MachineFault): StormFault => ({
  name: fault.name,
  slots: machineSlots(fault),
  when: "start",
  arrange: ({ task }) => fault.arrange(task),
  lift: ({ task }) => fault.lift(task),
  ...(fault.options === undefined ? {} : { options: fault.options }),
  ...(machineSlots(fault).includes(".opencode/state") ? { refuses: "disk" as const } : {}),
  ...(fault.options?.launcher === undefined ? {} : { losesState: true }),
  ...(fault.record === "outbox" ? { refuses: "ledger" as const } : {}),
})

const storedFault = (damage: (typeof DAMAGES)[number]): StormFault => ({
  name: `stored ${damage.folder} ${damage.name}`,
  slots: [`stored ${damage.folder}`],
  when: "resume",
  needs: ["resume"],
  arrange: ({ task }) => damageState(task, damage),
})

/** Every fault that has a test of its own, as the storm uses it. */
export const KNOWN_FAULTS: readonly StormFault[] = [
  ...PROJECT_FAULTS.map(projectFault),
  projectFault(clientFault("session.get", "hangs")),
  ...[...named.values()].map(ledgerFault),
  FOREIGN,
  ...MACHINE_FAULTS.map(machineFault),
  ...DAMAGES.map(storedFault),
]
