import { trimLineEnd } from "./user-text.ts"

/** CommonMark's fences: three or more of one mark, indented by at most three; a closing one has nothing after it. */
const FENCE = /^ {0,3}(`{3,}|~{3,})(.*)/s

/** @returns the fence that is open after the line, `""` for none */
export const fenceAfter = (line: string, open: string): string => {
  const [, mark = "", rest = ""] = FENCE.exec(line) ?? []
  if (mark === "") return open
  if (open === "") return mark.startsWith("`") && rest.includes("`") ? "" : mark
  const closes = mark.startsWith(open) && trimLineEnd(rest) === ""
  return closes ? "" : open
}
