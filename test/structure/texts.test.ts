import { join, relative } from "node:path"
import * as ast from "typescript/unstable/ast"
import { API, type Checker, TypeFlags } from "typescript/unstable/sync"
import { expect, test } from "vitest"
import { promised } from "../requirements.ts"
import { REPOSITORY } from "../support/opencode/opencode-binary.ts"

const BUNDLE = ".opencode/baton"
const CUTTER = `${BUNDLE}/host/text.ts`
const EXAMPLES = "test/fixtures/text-cuts.ts"

/** Hold ASCII alone, which has no halves. A digest and an ISO time are known by their call. */
const ASCII: readonly string[] = [
  "compaction/opening.ts: head",
  "compaction/texts.ts: time",
  "doctor/checks/features.ts: since",
  "learning/capture.ts: saying.at",
  "learning/learned-command.ts: localMinute(at)",
  "learning/recall.ts: at",
  "ledger/embedded/format.ts: fraction",
  'ledger/embedded/format.ts: offsetText(offsetMinutes, "")',
  "ledger/embedded/format.ts: wallClock(moment)",
  "pass-over/audit/log.ts: entry.at",
  "task/activity.ts: git.head",
  "task/user-words.ts: at",
]
const ASCII_CALL = /\.(?:digest\("hex"\)|toISOString\(\))$/

const METHODS = ["slice", "substring", "substr"]
const LIMIT_NAME = /(?:characters|limit|max|most|room|width|size|count)$|^(?:max|most)(?![a-z])/i

/** Tells whether a place in a text is a number from the source or from the caller, and not one that was looked for. */
const isLimit = (place: ast.Expression, checker: Checker): boolean => {
  const isOne = (part: ast.Expression): boolean => isLimit(part, checker)
  if (ast.isParenthesizedExpression(place)) return isOne(place.expression)
  if (ast.isConditionalExpression(place)) return [place.whenTrue, place.whenFalse].some(isOne)
  // The right side is an offset, as in `at + 1`.
  if (ast.isBinaryExpression(place)) return isOne(place.left)
  if (ast.isCallExpression(place)) return /^Math\.\w+$/.test(place.expression.getText()) && place.arguments.some(isOne)
  if (ast.isPrefixUnaryExpression(place) || place.getText() === "0") return false
  if ((checker.getTypeAtLocation(place)?.flags ?? 0) & TypeFlags.NumberLiteral) return true
  return LIMIT_NAME.test(ast.isPropertyAccessExpression(place) ? place.name.text : place.getText())
}

const isText = (receiver: ast.Expression, checker: Checker): boolean => {
  const type = checker.getTypeAtLocation(receiver)
  const present = type && checker.getNonNullableType(type)
  return present !== undefined && checker.isTypeAssignableTo(present, checker.getStringType())
}

/** `slice(0, 80)` cuts at a limit, and so does `slice(-80)`; `slice(0, -1)` and `slice(at)` do not. */
const isCut = (places: readonly ast.Expression[], checker: Checker): boolean => {
  const [start, end] = places
  if (end) return isLimit(end, checker)
  return start !== undefined && ast.isPrefixUnaryExpression(start) && isLimit(start.operand, checker)
}

/** The receivers of a file's cuts, by line. */
const cutsIn = (file: ast.SourceFile, checker: Checker): { receiver: string; line: number }[] => {
  const found: { receiver: string; line: number }[] = []
  const visit = (node: ast.Node): void => {
    if (ast.isCallExpression(node) && ast.isPropertyAccessExpression(node.expression)) {
      const { expression: receiver, name } = node.expression
      const isFound = METHODS.includes(name.text) && isCut(node.arguments, checker) && isText(receiver, checker)
      const line = file.text.slice(0, name.getStart()).split("\n").length
      if (isFound) found.push({ receiver: receiver.getText(), line })
    }
    node.forEachChild(visit)
  }
  visit(file)
  return found
}

const projectCuts = () => {
  const api = new API({ cwd: REPOSITORY })
  try {
    const config = join(REPOSITORY, "tsconfig.json")
    const project = api.updateSnapshot({ openProjects: [config] }).getProject(config)
    if (!project) throw new Error(`expected a project of ${config}, received none`)
    const { program, checker, rootFiles } = project
    const cuts = (path: string) => {
      const file = program.getSourceFile(join(REPOSITORY, path))
      if (!file) throw new Error(`expected ${path} in the project, received nothing`)
      return cutsIn(file, checker).map((cut) => ({ path, ...cut }))
    }
    const bundle = rootFiles.map((path) => relative(REPOSITORY, path)).filter((path) => path.startsWith(`${BUNDLE}/`))
    return { bundle: bundle.flatMap(cuts), examples: cuts(EXAMPLES), files: bundle.length }
  } finally {
    api.close()
  }
}

const { bundle, examples, files } = projectCuts()
const nameOf = (path: string, receiver: string): string => `${relative(BUNDLE, path)}: ${receiver}`

test(promised("words.A5a", "texts are cut to a number of characters by host/text.ts alone"), () => {
  const isAscii = (path: string, receiver: string): boolean =>
    ASCII_CALL.test(receiver) || ASCII.includes(nameOf(path, receiver))
  const others = bundle.filter(({ path, receiver }) => path !== CUTTER && !isAscii(path, receiver))
  const found = others.map(({ path, line, receiver }) => `${path}:${line} ${receiver}`)
  expect(found, "use cutText or cutTextStart of host/text.ts").toEqual([])
  expect(files).toBeGreaterThan(100)
})

test(promised("words.A5a", "what may be cut otherwise, since it is ASCII, is there"), () => {
  const seen = new Set(bundle.map(({ path, receiver }) => nameOf(path, receiver)))
  expect(ASCII.filter((name) => !seen.has(name))).toEqual([])
})

test(promised("words.A5a", "every form of a cut is seen, and no list and no cut at a place that was found"), () => {
  expect(examples.map(({ receiver }) => receiver)).toEqual(Array.from({ length: 10 }, (_, at) => `cut${at + 1}`))
})
