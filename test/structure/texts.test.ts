import { readFileSync } from "node:fs"
import { join, relative } from "node:path"
import * as ast from "typescript/unstable/ast"
import { API, type Checker, TypeFlags } from "typescript/unstable/sync"
import { expect, test } from "vitest"
import { promised } from "../requirements.ts"
import { REPOSITORY } from "../support/opencode/opencode-binary.ts"

const BUNDLE = ".opencode/baton"
const CUTTER = `${BUNDLE}/host/text.ts`
const EXAMPLES = "test/fixtures/text-cuts.ts"
const CLAIMS = "test/fixtures/user-claims.ts"

/** Hold ASCII alone, which has no halves. A digest and an ISO time are known by their call. */
const ASCII: readonly string[] = [
  "compaction/task-note.ts: head",
  "compaction/texts.ts: time",
  "doctor/checks/features.ts: since",
  "learning/capture.ts: statement.at",
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

/** A number from the source or from the caller, and not one that was looked for. */
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

const WORDS = `${BUNDLE}/task/user-words.ts`
/** Says that words of the user's follow. */
const CLAIM =
  /\b(?:user['’]?s?\b[^.\n]*\b(?:words|asked|said|typed|wrote|requests?|messages?|brief)\b|verbatim|word for word)/i
const HEADING = /^#{1,6} .*/gm
/** The one heading that `renderUserWords` is given. */
const OWN_WORDS = /^#{2,3} The user's own words, newest first$/

const textOf = (node: ast.Node): string | undefined =>
  ast.isStringLiteral(node) ||
  ast.isNoSubstitutionTemplateLiteral(node) ||
  ast.isTemplateHead(node) ||
  ast.isTemplateMiddle(node) ||
  ast.isTemplateTail(node)
    ? node.text
    : undefined

/** Headings in a file's strings that claim to stand above words of the user's, and casts to such words. */
const claimsIn = (file: ast.SourceFile): { headings: string[]; casts: string[] } => {
  const [headings, casts]: [string[], string[]] = [[], []]
  const visit = (node: ast.Node): void => {
    const lines = [...(textOf(node) ?? "").matchAll(HEADING)].map(([line]) => line)
    // The title of a section is its heading.
    const isSection = ast.isCallExpression(node) && /section$/i.test(node.expression.getText())
    const title = isSection && node.arguments[0] ? textOf(node.arguments[0]) : undefined
    headings.push(...[...lines, ...(title === undefined ? [] : [title])].filter((line) => CLAIM.test(line)))
    if (ast.isAsExpression(node) && /\b(?:UserWords|TaskWords)\b/.test(node.type.getText())) casts.push(node.getText())
    node.forEachChild(visit)
  }
  visit(file)
  return { headings, casts }
}

const readProject = () => {
  const api = new API({ cwd: REPOSITORY })
  try {
    const config = join(REPOSITORY, "tsconfig.json")
    const project = api.updateSnapshot({ openProjects: [config] }).getProject(config)
    if (!project) throw new Error(`expected a project of ${config}, received none`)
    const { program, checker, rootFiles } = project
    const sourceOf = (path: string): ast.SourceFile => {
      const file = program.getSourceFile(join(REPOSITORY, path))
      if (!file) throw new Error(`expected ${path} in the project, received nothing`)
      return file
    }
    const cuts = (path: string) => cutsIn(sourceOf(path), checker).map((cut) => ({ path, ...cut }))
    const claims = (path: string) => ({ path, text: sourceOf(path).text, ...claimsIn(sourceOf(path)) })
    const bundle = rootFiles.map((path) => relative(REPOSITORY, path)).filter((path) => path.startsWith(`${BUNDLE}/`))
    return {
      bundle: bundle.flatMap(cuts),
      claims: bundle.map(claims),
      examples: cuts(EXAMPLES),
      claimed: claims(CLAIMS),
      files: bundle.length,
    }
  } finally {
    api.close()
  }
}

const { bundle, claims, examples, claimed, files } = readProject()
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

test(promised("words.A1", "what a person typed is made by task/user-words.ts alone"), () => {
  expect(claims.flatMap(({ path, casts }) => casts.map(() => path))).toEqual([WORDS])
})

test(promised("words.A1", "no heading claims words of the user's but that of renderUserWords"), () => {
  const headings = claims.flatMap(({ path, text, headings }) =>
    headings.map((heading) => ({ path, heading, isRendered: text.includes("renderUserWords(") })),
  )
  const isOwn = ({ heading, isRendered }: (typeof headings)[number]) => isRendered && OWN_WORDS.test(heading)
  expect(headings.filter((each) => !isOwn(each)).map(({ path, heading }) => `${path}: ${heading}`)).toEqual([])
  const shown = claims.filter(({ path, text }) => text.includes("WORDS_HEADING") && !path.endsWith("/user-words.ts"))
  expect(shown.length).toBeGreaterThan(2)
  for (const { path, text } of shown) expect(text, path).toContain("renderUserWords(")
})

test(promised("words.A1", "every form of a heading or cast that claims the user's words is seen"), () => {
  expect(claimed.headings).toEqual([
    "## The user's first request, verbatim",
    "# What the user asked for",
    "### User’s messages",
    "## Copied word for word",
    "The user's brief",
  ])
  expect(claimed.casts).toHaveLength(2)
})

test(promised("words.B1", "the linter refuses an untrusted text in a template, a join or a String()"), () => {
  const { scripts } = JSON.parse(readFileSync(join(REPOSITORY, "package.json"), "utf8"))
  // test/fixtures/untrusted-shown.ts expects each of them, and its comments are errors where a rule does not see it.
  expect(scripts.lint).toContain("oxlint --type-aware --deny-warnings --report-unused-disable-directives .opencode")
})
