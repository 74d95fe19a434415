import type { RunProcess } from "../host/process.ts"

/** The input of the checks. They may change nothing but `scratch`. */
export type Context = {
  /** Absolute path of the project: the folder that has, or would have, `.opencode`. */
  readonly root: string
  /** The user's folder, if the project was found from there. */
  readonly here?: string | undefined
  readonly home: string
  readonly environment: Readonly<Record<string, string | undefined>>
  /** An empty temporary folder for programs that write where they run; removed at the end. */
  readonly scratch: string
  readonly run: RunProcess
}
