import type { RunProcess } from "../host/process.ts"

export type Status = "ok" | "warning" | "broken"

/** What one look found. `fix` says what a person can do about it; an `ok` needs none. */
export type Observation =
  | { readonly status: "ok"; readonly message: string }
  | { readonly status: "warning" | "broken"; readonly message: string; readonly fix: string }

/** An observation under the id of the check that made it; the ids are listed in docs/doctor.md. */
export type Finding = { readonly id: string; readonly status: Status; readonly message: string; readonly fix?: string }

/** What the checks may look at. Nothing of it may be changed, apart from `scratch`. */
export type Subject = {
  /** Absolute path of the project: the folder that holds `.opencode`, or would. */
  readonly root: string
  readonly home: string
  readonly environment: Readonly<Record<string, string | undefined>>
  /** An empty temporary folder for programs that write where they run; removed at the end. */
  readonly scratch: string
  readonly run: RunProcess
}

export type Check = {
  readonly id: string
  /** Has nothing to say about a project without Baton. */
  readonly needsBundle?: true
  /** May throw: the report turns that into a finding of its own. */
  readonly examine: (subject: Subject) => Promise<readonly Observation[]>
}

export const ok = (message: string): Observation => ({ status: "ok", message })

export const warning = (message: string, fix: string): Observation => ({ status: "warning", message, fix })

export const broken = (message: string, fix: string): Observation => ({ status: "broken", message, fix })
