import { readFileSync } from "node:fs"
import { join } from "node:path"
import { chooseLearnings } from "../../.opencode/baton/learning/fitting.ts"
import { type KnownLearning, lookUpBy } from "../../.opencode/baton/learning/known.ts"
import { isGeneral, type LearningType } from "../../.opencode/baton/learning/signals.ts"
import { REPOSITORY } from "./opencode/opencode-binary.ts"

/** Rules and words were tuned on `developed` alone; each project is in one of the two. */
export const RECALL_PARTS = ["developed", "held-back"] as const
type RecallPart = (typeof RECALL_PARTS)[number]

/** A line of the file: the learnings of a project follow its name, and then its requests with the ids of what fits. */
type Line = {
  project?: string
  id?: string
  by: "user" | "agent"
  type?: LearningType
  text: string
  files?: string[]
  concepts?: string[]
  times?: number
  message?: string
  fits: string[]
}
type Request = { readonly message: string; readonly fits: readonly string[] }
type Project = { readonly name: string; readonly learnings: KnownLearning[]; readonly requests: Request[] }

const NOW = Date.parse("2026-11-22T12:00:00Z")

const readLines = <Row>(name: string): Row[] =>
  readFileSync(join(REPOSITORY, "test", "fixtures", "recall", `${name}.jsonl`), "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Row)

const toLearning = ({ id = "", by, type = "insight", text, files = [], concepts = [], times = 1 }: Line) => ({
  ...lookUpBy(text, type, concepts),
  ...(by === "agent" ? ({ reach: "subject" } as const) : {}),
  key: id,
  folder: by === "user" ? "/p" : "",
  by,
  type,
  files,
  at: "2026-11-20T12:00:00Z",
  times,
  messageIDs: [],
  confirmed: false,
  status: "active" as const,
})

export const readProjects = (part: RecallPart): Project[] => {
  const projects: Project[] = []
  for (const line of readLines<Line>(part)) {
    const project = projects.at(-1)
    if (line.project !== undefined) projects.push({ name: line.project, learnings: [], requests: [] })
    else if (line.message === undefined) project?.learnings.push(toLearning(line))
    else project?.requests.push({ message: line.message, fits: line.fits })
  }
  return projects
}

export const given = (learnings: readonly KnownLearning[], message: string): string[] =>
  chooseLearnings(learnings, message, NOW).map(({ key }) => key)

/** How many of those given fit, and how many of those that fit are given: of all, and without rules about the manner of all work. */
export const scoreRecall = (part: RecallPart) => {
  const [all, bySubject] = [0, 0].map(() => ({ given: 0, fitting: 0, right: 0 })) as [Tally, Tally]
  const wrong: string[] = []
  let requests = 0
  for (const project of readProjects(part)) {
    const reaches = new Map(project.learnings.map(({ key, reach }) => [key, reach]))
    const isSubject = (key: string): boolean => ["subject", "moment"].includes(reaches.get(key) ?? "")
    for (const { message, fits } of project.requests) {
      const told = given(project.learnings, message)
      const right = told.filter((key) => fits.includes(key))
      add(all, told, fits, right)
      add(bySubject, told.filter(isSubject), fits.filter(isSubject), right.filter(isSubject))
      wrong.push(...told.filter((key) => !fits.includes(key)).map((key) => `${project.name}: ${key} at ${message}`))
      requests += 1
    }
  }
  return { requests, ...shares(all), bySubject: shares(bySubject), wrong }
}

type Tally = { given: number; fitting: number; right: number }

const add = (tally: Tally, told: readonly string[], fits: readonly string[], right: readonly string[]): void => {
  tally.given += told.length
  tally.fitting += Math.min(fits.length, 5)
  tally.right += right.length
}

const shares = ({ given, fitting, right }: Tally) => ({ precision: right / given, recall: right / fitting })

/** Of corrections said once: the share of those told at once that are rules, and of the rules that are told at once. */
export const scoreOnce = (part: RecallPart) => {
  const set = readLines<{ part: string; rule: boolean; sentence: string }>("once").filter((one) => one.part === part)
  const told = set.filter(({ sentence }) => isGeneral(sentence))
  const right = told.filter(({ rule }) => rule).length
  return {
    precision: right / told.length,
    recall: right / set.filter(({ rule }) => rule).length,
  }
}
