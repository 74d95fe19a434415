import { describe, expect, test, vi } from "vitest"
import { promised } from "../../requirements.ts"
import type { AgentTurn } from "../../support/opencode/fake-opencode.ts"
import { openFeaturePasses, toolContextOf } from "../../support/opencode/feature-passes.ts"

const RETURN = { status: "completed", summary: "Done." }

/** Keeps the turn open until it is aborted. */
const speakOn = ({ signal }: AgentTurn): Promise<void> =>
  new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }))

const aborted = (sessionID: string) => ({
  type: "session.error",
  properties: { sessionID, error: { name: "MessageAbortedError" } },
})

describe("a subagent that has returned and speaks on", () => {
  test(
    promised(["pass-over.A1", "pass-over.B1"], "keeps nobody waiting, and its files are in the result"),
    async () => {
      const passes = openFeaturePasses({
        agents: {
          coder: async (turn) => {
            await turn.write("b.txt", "b\n")
            await turn.giveBack(RETURN)
            await speakOn(turn)
          },
        },
      })
      const answer = await passes.pass()
      expect(answer).toContain("added b.txt")
      expect(passes.opencode.isBusy()).toBe(true)
      await passes.feature.receive(aborted(passes.opencode.rootID))
      await vi.waitFor(() => expect(passes.opencode.isBusy()).toBe(false))
    },
  )

  test(promised("pass-over.C3", "may use no tool any more"), async () => {
    const refusals: string[] = []
    const passes = openFeaturePasses({
      agents: {
        coder: async (turn) => {
          await turn.giveBack(RETURN)
          await vi.waitFor(() => expect(passes.recordOf(passes.ids()[0] ?? "").state.state).toBe("returned"))
          try {
            await turn.use("bash", { command: "true" })
          } catch (error) {
            refusals.push(String(error))
          }
        },
      },
    })
    await passes.pass()
    await vi.waitFor(() => expect(refusals).toEqual([expect.stringContaining("the pass is over")]))
  })

  /**
   * A returned pass whose subagent is about to request its closing words.
   *
   * @param said called before that request
   */
  const comeBack = async (said: () => void) => {
    const passes = openFeaturePasses({
      agents: {
        coder: async (turn) => {
          await turn.giveBack(RETURN)
          await passes.feature.offerTools(turn.sessionID, [])
          said()
        },
      },
    })
    await passes.pass()
    return passes
  }

  test(promised("pass-over.G3", "asks its model after its originator has asked its own"), async () => {
    const order: string[] = []
    const { feature, opencode } = await comeBack(() => order.push("subagent"))
    order.push("originator")
    feature.requestPrepared(opencode.rootID)
    await vi.waitFor(() => expect(order).toEqual(["originator", "subagent"]))
  })

  test(promised("pass-over.G3", "does not wait for an originator that does not go on"), async () => {
    const said = vi.fn()
    await comeBack(said)
    await vi.waitFor(() => expect(said).toHaveBeenCalled(), { timeout: 5_000 })
  })

  test(promised("pass-over.D2", "is ended by an abort of any session above it"), async () => {
    const passes = openFeaturePasses({
      agents: {
        coder: async (turn) => {
          await passes.pass({ subagent: "second" }, toolContextOf(turn.sessionID, "coder"))
          await turn.giveBack(RETURN)
        },
        second: async (turn) => {
          await turn.giveBack(RETURN)
          await speakOn(turn)
        },
      },
    })
    await passes.pass()
    expect(passes.opencode.isBusy()).toBe(true)
    await passes.feature.receive(aborted(passes.opencode.rootID))
    await vi.waitFor(() => expect(passes.opencode.isBusy()).toBe(false))
  })
})

test(
  promised("pass-over.B1", "a subagent whose transcript cannot be read when it returns is waited for to its end"),
  async () => {
    let isReadable = false
    let [returned, end] = [false, (): void => {}]
    const passes = openFeaturePasses({
      agents: {
        coder: async (turn) => {
          await turn.write("b.txt", "b\n")
          await turn.giveBack(RETURN)
          returned = true
          await new Promise<void>((resolve) => {
            end = resolve
          })
        },
      },
      faults: (call) => (call === "messages" && !isReadable ? "Unreadable" : undefined),
    })
    const answer = passes.pass()
    // If it were idle, its return would have ended after its result.
    await vi.waitFor(() => expect(returned).toBe(true))
    expect(passes.recordOf(passes.ids()[0] ?? "").state.state).toBe("waiting_for_return")
    isReadable = true
    end()
    expect(await answer).toContain("added b.txt")
  },
)
