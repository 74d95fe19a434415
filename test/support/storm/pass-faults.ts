import type { ErrorCode } from "../../../.opencode/baton/pass-over/errors.ts"
import { clientFault } from "../fault-table.ts"
import type { ChildBehaviour, RootBehaviour, StormFault } from "./storm-fault.ts"

const childFault = (name: string, child: ChildBehaviour, policy?: unknown): StormFault => ({
  name,
  slots: ["child", ...(policy === undefined ? [] : ["policy"])],
  when: "start",
  needs: ["pass"],
  child,
  ...(policy === undefined ? {} : { policy }),
})

const rootFault = (name: string, root: RootBehaviour, needs: "pass" | "code", policy?: unknown): StormFault => ({
  name,
  slots: ["root", ...(policy === undefined ? [] : ["policy"])],
  when: "start",
  needs: [needs],
  root,
  ...(policy === undefined ? {} : { policy }),
})

/** The client's own calls that a pass is made of; `session.get` and `session.messages` are among the others as well. */
const callFault = (call: string, how: string): StormFault => {
  const { name, arrange, lift } = clientFault(call, how)
  return {
    name,
    slots: [call],
    when: "any",
    needs: ["pass"],
    arrange: ({ task }) => arrange(task),
    lift: ({ task }) => lift(task),
  }
}

const CRASH = childFault("a subagent's model fails", "crash")
const HANG = childFault("a subagent never answers", "hang")
const WRONG = childFault("a subagent returns what is no work output", "wrong return")
const CHAIN = callFault("session.get", "answers an error")
const DEEPER = childFault("a subagent passes over too deep", "deeper", { defaults: { max_chain_depth: 1 } })
const CYCLE = childFault("a subagent passes over to itself", "cycle")
const UNKNOWN_AGENT = rootFault("work is passed to an unknown subagent", "unknown subagent", "pass")
const LIMIT = rootFault("a session has used up its passes", "one more pass", "pass", {
  defaults: { max_passes_per_session: 1 },
})
const CONFLICT = rootFault("a file changes while a pass holds it", "conflict", "code")
const UNKNOWN_PASS = rootFault("an unknown pass is applied", "unknown pass", "code")
const TWICE = rootFault("a pass is applied twice", "applied twice", "code")
const POLICY: StormFault = {
  name: "the policy cannot be used",
  slots: ["policy"],
  when: "start",
  needs: ["pass"],
  policy: '{ "defaults": { "timeout_ms": "soon" } ',
}

/** Which fault of the storm leads to each error of a pass. */
export const FAULT_OF_ERROR: Record<ErrorCode, StormFault> = {
  E001: UNKNOWN_AGENT,
  E002: DEEPER,
  E003: CYCLE,
  E004: LIMIT,
  E010: HANG,
  E011: CRASH,
  E020: CHAIN,
  E021: WRONG,
  E022: CONFLICT,
  E023: UNKNOWN_PASS,
  E024: TWICE,
  E030: POLICY,
}

export const PASS_FAULTS: readonly StormFault[] = [
  ...Object.values(FAULT_OF_ERROR),
  childFault("a subagent's model fails after it changed files", "crash late"),
  childFault("a subagent ends without a return", "prose"),
  callFault("session.create", "rejects"),
  callFault("session.prompt", "answers an error"),
]
