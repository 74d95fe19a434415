import { expect, test } from "vitest"
import { checksOf } from "../../../.opencode/baton/work/checks.ts"
import type { Queue, Taken } from "../../../.opencode/baton/work/ledger.ts"
import { promised } from "../../requirements.ts"
import { temporaryFolder } from "../../support/files/with-test.ts"
import { createLedgerDriver } from "../../support/ledger/ledger-driver.ts"
import { holdEmbedded } from "../../support/ledger/ledger-process.ts"
import { NEWEST } from "../../support/opencode/opencode-binary.ts"

const held = holdEmbedded(NEWEST)
const OWN_PID = String(process.pid)

test(promised("work.B3", "a worker goes on from the workers' runs, not from a person's own session"), async () => {
  const ledger = createLedgerDriver(held(temporaryFolder()))
  const next = () => ledger.json<Taken>("claim", "--next", "-p", "demo", "--as", "w1", "--json")
  const bind = (session: string, holder: string) =>
    ledger.ok("claim", "--session", session, "--pid", OWN_PID, "--as", holder, "--", id)
  const end = (session: string, kind: string) =>
    ledger.ok("run-end", "--", JSON.stringify([{ session, pid: process.pid, kind, detail: "Which?" }]))
  const id = await ledger.task("T")
  await next()
  await bind("ses_worker", "w1")
  await end("ses_worker", "question")
  await ledger.ok("unblock", id, "The first.")
  await bind("ses_person", "ada")
  await end("ses_person", "unfinished")
  await ledger.ok("open", id)
  expect(await next()).toMatchObject({
    ...{ task: id, run: 3, answer: "The first." },
    earlier: [{ n: 1, worker: "w1", session_id: "ses_worker", kind: "question" }],
  })
})

test(promised("work.B4", "the checks of begun tasks are known when a worker starts again"), async () => {
  const ledger = createLedgerDriver(held(temporaryFolder()))
  const add = (name: string) => ledger.task("T", "--dod", `check: make ${name}`)
  const blocked = await add("blocked")
  const { run } = await ledger.json<{ run: number }>("claim", "--next", "-p", "demo", "--as", "w1", "--json")
  await ledger.ok("run-end", "--", JSON.stringify([{ task: blocked, n: run, kind: "question", detail: "Which?" }]))
  const known = new Map([[blocked, ["make blocked"]]])
  for (const name of ["start", "review", "done", "cancel"]) {
    const id = await add(name)
    await ledger.ok("start", id)
    if (name !== "start") await ledger.ok(name, id)
    if (name === "start" || name === "review") known.set(id, [`make ${name}`])
  }
  const open = await add("open")
  known.set(open, ["make open"])
  const queue = await ledger.json<Queue>("queue", "-p", "demo", "--json")
  expect(queue.tasks.map(({ task }) => task)).toEqual([open])
  expect(checksOf(queue)).toEqual(known)
})
