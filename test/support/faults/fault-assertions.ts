import { beforeAll, describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { deadline } from "../opencode/deadline.ts"
import type { OpenCodeBinary } from "../opencode/opencode-binary.ts"
import { TASK } from "../opencode/task-project.ts"
import type { CompactionFault, FaultyRunOptions } from "./fault.ts"
import { type Ending, type FaultyRun, recordOf, runFaults, runReference } from "./fault-sequence.ts"

const BOTH_RUNS_DEADLINE_MS = deadline(300_000)

/** The tests of a table of faults, which meet one session one after the other. All promises of faults.F1 are tested here. */
export const describeFaults = (
  title: string,
  binary: OpenCodeBinary,
  faults: readonly CompactionFault[],
  options: FaultyRunOptions = {},
): void => {
  describe(title, () => {
    let reference: Ending
    let run: FaultyRun
    beforeAll(async () => {
      ;[reference, run] = await Promise.all([runReference(binary, faults, options), runFaults(binary, faults, options)])
    }, BOTH_RUNS_DEADLINE_MS)

    test.each(faults)(
      promised("faults.F1", "$name: the log says so, the agent goes on and the record is kept"),
      (fault) => {
        const step = run.steps.get(fault.name)
        if (fault.expectedLog) expect(step?.log).toMatch(fault.expectedLog)
        if (fault.isClientFault) expect(step?.brokenCalls).toBeGreaterThan(0)
        expect(step?.knewTask, "the next turn was told the task").toBe(true)
        const record = recordOf(fault, faults.indexOf(fault))
        const { ledger, outbox } = run.records
        // On a busy machine Baton may stop calling the ledger for a while; the record then waits in the outbox. A record whose
        // call timed out too early is found in the ledger by the next delivery.
        for (const place of [ledger, outbox])
          expect(place.filter((message) => message === record).length).toBeLessThanOrEqual(1)
        expect(fault.record === "ledger" ? [...ledger, ...outbox] : outbox).toContain(record)
      },
    )

    test(promised("faults.F1", "the run exits, prints and asks the model as it does without the bundle"), () => {
      expect(reference.exitCode).toBe(0)
      expect(run.ending).toEqual(reference)
    })

    test(
      promised("faults.F1", "every record reaches the ledger once and in order when nothing is broken any more"),
      () => {
        expect(run.recordsLater).toEqual({ ledger: faults.map(recordOf), outbox: [] })
        expect(run.description.startsWith(TASK.specification)).toBe(true)
        expect(run.description.match(/# Handoff after compaction \d+/g)).toEqual([
          `# Handoff after compaction ${faults.length}`,
        ])
      },
    )

    test(promised(["faults.F1", "faults.F2"], "no process outlives the run and nothing is written elsewhere"), () => {
      expect(run.leftovers).toEqual([])
      expect(run.outside.after).toEqual(run.outside.before)
    })
  })
}
