import type { Refusal } from "./worktree.ts"

const refuse =
  (code: Refusal["code"], fix: string) =>
  (reason: string): Refusal => ({ kind: "refused", code, reason, fix })

export const noGit = refuse("no-git", "Install git, or pass to a subagent that may not change files.")

export const noRepository = refuse(
  "no-repository",
  "Run git init in the project and list in .gitignore what is not to be copied, or pass to a subagent that may not change files.",
)

export const unknownPass = (passID: string): Refusal =>
  refuse("unknown-pass", "pass_over_status lists the passes there are.")(`no files are kept for a pass ${passID}`)

export const busy = refuse("busy", "Try again when that is done.")

export const damaged = refuse("damaged", "Look into the folder named; nothing in it was changed.")

export const wrongState = (reason: string, fix: string): Refusal => refuse("wrong-state", fix)(reason)

export const failed = refuse("failed", "Mend the cause and try again; what is held stays held.")
