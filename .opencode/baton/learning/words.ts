import { createHash } from "node:crypto"

const SMALL = new Set(
  (
    "a an the and or but so if then than that this these those there here it its i me my we us our you your he she they them their " +
    "is are was were be been being am do does did done doing don dont have has had having will would can could should shall must may might " +
    "to of in on at by for from with without into onto out up down over under about as not no nope nah yes ok okay please just only also too very really " +
    "what which who when where why how all any some every each both more most much many few one two other another same own such " +
    "wrong right correct incorrect actually instead rather prefer preferred use used using make makes made want wanted asked meant said say " +
    "always never again still now later new old thing things way like lets let get got go going good bad better best well sorry thanks " +
    "wait hmm oh hey stop because since need needs put keep try work works worked working fix add change write code file files line lines " +
    "m s t d ll re ve didn doesn isn wasn shouldn couldn wouldn won cannot " +
    "nein ja nicht immer nie niemals wir ich du sie es der die das den dem des ein eine einen einem einer und oder aber auch nur bitte hier mit ohne für von vom zu zum zur im am auf bei als statt anstatt sondern lieber wenn dass kein keine keinen keiner ist sind wird werden muss müssen soll sollen sollte darf dürfen kann können haben habe diese dieser dieses diesem diesen jede jeder jedem jeden alle alles mehr noch schon jetzt dann so wie was nach vor vorher zuerst uns unser unsere mir mich dir dich verwende verwenden benutze benutzen nutze nutzen nimm nehmen mach machen schreib schreibe schreiben neue neuen falsch richtig gibt bevor unter über sich ab außer laufen danach beim meine meinen " +
    "el la los las un una unos unas y o pero que con sin para por como es son está están esta este esto eso ese esa de del al en lo le les se su sus mi tu nos no sí siempre nunca también más muy ya aquí ahora antes después cada todos todas todo toda hay debe deben debes tienes tiene hacer haz usa usar usamos uso utiliza mejor otra otro vez lugar cuando si donde entre desde hasta solo nada así favor partir adelante vamos " +
    "le les une des du et ou mais qui que dans pour avec sans sur par ce cette ces c il elle on nous vous je tu ne pas plus jamais toujours non oui est sont être fait faire fais doit dois doivent utilise utiliser utilisons plutôt ici à au aux en y d l n qu j chaque tous toutes tout avant après si comme où même aussi lieu autre maintenant désormais abord déjà existe existant voulais sauf"
  ).split(" "),
)

/** Words of two characters that name no subject. */
const SMALL_HAN = new Set(
  "我们 你们 他们 这个 那个 这里 那里 这样 那样 什么 怎么 不要 不用 不是 不能 必须 应该 一定 总是 始终 一律 永远 所有 每次 以后 现在 开始 请用 使用 可以 需要 没有 还是 而是 或者 以及 如果 因为 所以 但是 直接 里的 的是 不对 就是 都要 要先 请始 终用 要用 里不 一个 项目 代码".split(
    " ",
  ),
)
const HAN_RUN = /\p{Script=Han}+/gu
/** Chinese writes no blanks: its words are taken for pairs of characters. */
const pairsOf = (run: string): string =>
  Array.from({ length: Math.max(run.length - 1, 1) }, (_, at) => run.substring(at, at + 2))
    .filter((pair) => !SMALL_HAN.has(pair))
    .join(" ")

const WORD = /[\p{L}\p{N}_$@][\p{L}\p{N}_$.+#/@-]*/gu

/** Removes plural and tense endings, so that "tests" and "testing" match "test". Words with other characters stay unchanged. */
const stem = (word: string): string => {
  if (!/^[a-z]{4,}$/.test(word)) return word
  const base = word.replace(/(?:ies)$/, "y").replace(/(?:(?<=[^aeious])s|(?<=(?:ss|sh|ch|x))es)$/, "")
  return base.replace(/(?<=\w{3})(?:ing|ed)$/, "").replace(/([b-df-hj-np-tv-z])\1$/, "$1")
}

const unquoted = (word: string): string => word.replace(/^[@$]+(?=\w)|(?<![./-])[./-]+$/g, "")

/** Returns the words that carry a text's meaning, in order, lower case and stemmed. */
export const contentWords = (text: string): string[] =>
  (
    text
      .toLowerCase()
      .replaceAll(/[’']/g, " ")
      .replace(HAN_RUN, (run) => ` ${pairsOf(run)} `)
      .match(WORD) ?? []
  )
    .map(unquoted)
    .filter((word) => word !== "" && !SMALL.has(word))
    .map(stem)

/** Words of any work on software, and of any English: they name no subject. */
const COMMON = (
  "able accept act ad after afterwards against ago allow almost alone along already although among amount answer " +
  "anything apart api app application apply april argument around array arrive aside ask august away back base " +
  "become before begin behind below beside between big bring build busy button buy call care carry case check class " +
  "clear client close collect column come command commit common compare component compute config consider contain " +
  "continue convert copy cost count cover create current customer cut data date day deal december decide default " +
  "delete deploy describe different direct document double dozen drop early easy edit eight either else empty end " +
  "endpoint enough entry error even evening event ever exact example exist expect explain extend extra fail failure " +
  "fall far fast feature february field fill filter final find finish first fit five folder follow forget form " +
  "format four fourth free friday full function further general give group grow guess half hand handle happen hard " +
  "head header hear help hide high hold hour hundred idea image import include index input inside item january job " +
  "join july jump june key kind know large last late latter lead learn least leave length less level library life " +
  "likely limit link list little live load local log logic long look loop lose low main manage map march mark match " +
  "matter mean meet merely message method middle minute miss mistake model module monday month morning move name " +
  "native near necessary network next nice night nine none normal note nothing notice november number object " +
  "october off often once open option order output outside package page pair parameter part pass path pattern " +
  "people per percent person phone pick piece place plain plan play point poor possible press pretty prevent print " +
  "problem process prod produce product production program project proper prove provide provider public pull pure " +
  "push quarter query question quick quiet quite raise rate raw reach react read reader ready real reason receive " +
  "recent record reduce refer regular relate release remain remember remove render repeat replace report repository " +
  "request require resource response rest result return rise role room round row rule run safe saturday save scale " +
  "screen script search second section see seem select send separate september serious server service session set " +
  "setting seven several share short show side sign silent similar simple simply single sit site six size sleep " +
  "slow small smart soft soon sort source space special spend spread stand start state statement status stay step " +
  "stick store straight strange strict string strong style suggest sunday support sure switch symbol system table " +
  "tag take task team tell ten text think third though thousand three through throw thursday time title today " +
  "together tomorrow tool top total touch toward track treat triple trouble true tuesday turn twice type understand " +
  "unit until update upgrade upper useful user usual value variable various version via view visit walk watch wear " +
  "web wednesday week weekend whole wide win wish within wonder word world worth year yesterday yet zero"
).split(" ")

/** Words for one subject, of which people use one and learnings another. */
const ALIASES = [
  "test spec",
  "color colour",
  "mail email e-mail",
  "database db postgres sqlite mysql",
  "translation translate locale i18n language localization",
  "auth login token password authentication",
  "performance slow slower fast faster quick quicker speed",
  "certificate cert tls",
  "documentation docs readme",
  "money price amount currency cents discount",
  "permission role access",
  "picture photo image",
  "dashboard panel grafana",
  "secret password credential",
  "async tokio await",
  "notification push",
  "date datetime timestamp",
]

const ENDING = /(?:ations?|ions?|ments?|ers?|ors?|als?|ly|able|ive|ity|e|y)$/

/** A shorter form than the stem, so that "certificates" and "notify" match "certificate" and "notification". */
const rootOf = (word: string): string => {
  if (!/^[a-z]{4,}$/.test(word)) return word
  const cut = word.replace(/(?<=e)s$/, "").replace(ENDING, "")
  return cut.length >= 3 ? cut : word
}

const SUBJECTS = new Map(
  ALIASES.flatMap((words) => {
    const [first = "", ...others] = words.split(" ").map((word) => rootOf(stem(word)))
    return others.map((other) => [other, first])
  }),
)
let commonRoots: ReadonlySet<string> | undefined

export const isCommon = (root: string): boolean => {
  // Takes 7 ms, which a message that is only examined need not wait for.
  commonRoots ??= new Set(COMMON.map((word) => rootOf(stem(word))))
  return commonRoots.has(root)
}

const COMMON_WEIGHT = 0.25

export const weightOf = (root: string): number => (isCommon(root) ? COMMON_WEIGHT : 1)

/** Returns what a text is looked up by: the roots of its words and of the parts of its names, each once. */
export const rootsOf = (text: string): string[] => {
  const parts = text
    .replace(/\.[a-z]{1,4}\b/g, " ")
    .replace(/(\p{Ll})(\p{Lu})/gu, "$1 $2")
    .replace(/[/_.#:@()`*-]+/g, " ")
  const words = [...contentWords(text), ...contentWords(parts)].filter((word) => word.length > 1 && !/^\d+$/.test(word))
  return [...new Set(words.map(rootOf).map((root) => SUBJECTS.get(root) ?? root))]
}

const OPENER = /^(?:(?:no+|nope|nah|wait|ok|okay|hmm*|sorry|please|thanks|actually|and|but|so)\b[\s,.!:;…–—-]*)+/i
/** In the five languages of the detector. */
const NEGATION = new RegExp(
  [
    String.raw`\b(?:not|never|no|avoid|stop|without|nie|niemals|nicht|kein(?:e[mnrs]?)?|ohne|(?:an)?statt)\b`,
    String.raw`\b(?:nunca|jamás|sin|jamais|pas|sans|aucune?)\b|n['’]?t\b`,
    String.raw`\b(?:instead of|rather than|over|en vez de|en lugar de)\b|\bau lieu d[eu'’]|不(?!对|是)|别|勿|禁止|避免`,
  ].join("|"),
  "gi",
)

/**
 * Names a sentence by its content: its content words in order, and the position of its negations. The same statement in another
 * spelling has the same key. Pure.
 *
 * @returns 12 hex digits
 */
export const learningKey = (sentence: string): string => {
  const parts = sentence.replace(OPENER, "").split(NEGATION)
  const words = parts.map((part) => contentWords(part).join(" ")).join(" !")
  return createHash("sha256").update(words).digest("hex").slice(0, 12)
}

/** The content words of what a sentence asks for and of what it rules out. */
type Claim = { readonly wanted: readonly string[]; readonly unwanted: readonly string[] }

/** Words that rule out what follows them, up to the end of the clause. */
const AGAINST =
  /\b(?:instead of|rather than|over|not|never|avoid|stop|without)\b|\b(?:do|does|should|must|wo|ca)n['’]?t\b/i
const CLAUSE_END = /[,;:.!—–]|\b(?:use|but|instead|prefer)\b/i
const NEGATIVE_OPENER = /^(?:no+|nope|nah|wait)\b[\s,.!:;–—-]*/i

const readClaim = (sentence: string): Claim => {
  let rest = sentence.replace(NEGATIVE_OPENER, "")
  const [wanted, unwanted]: [string[], string[]] = [[], []]
  for (;;) {
    const against = AGAINST.exec(rest)
    if (!against) return { wanted: [...wanted, ...contentWords(rest)], unwanted }
    wanted.push(...contentWords(rest.slice(0, against.index)))
    rest = rest.slice(against.index + against[0].length).replace(/^\s*use\b/i, "")
    const end = CLAUSE_END.exec(rest)?.index ?? rest.length
    unwanted.push(...contentWords(rest.slice(0, end)))
    rest = rest.slice(end)
  }
}

const meets = (some: readonly string[], others: readonly string[]): boolean =>
  some.some((word) => others.includes(word))
const isSame = (some: readonly string[], others: readonly string[]): boolean =>
  some.length > 0 && some.every((word) => others.includes(word)) && others.every((word) => some.includes(word))

const NUMBER = /\b\d+\b/g
/** True for "4 spaces" and "2 spaces": the same words, another number. */
const differsInNumber = (one: string, other: string): boolean => {
  const [first, second] = [contentWords(one).join(" "), contentWords(other).join(" ")]
  const words = contentWords(one.replaceAll(NUMBER, "")).length
  return words >= 1 && first !== second && first.replaceAll(NUMBER, "#") === second.replaceAll(NUMBER, "#")
}

/**
 * A newer sentence revokes an older one in certain cases only: each wants what the other rules out, one rules out
 * exactly what the other wants, or they differ in nothing but a number. A narrower sentence is an exception to a wider one, which
 * stays. Pure.
 */
export const contradicts = (newer: string, older: string): boolean => {
  const [now, before] = [readClaim(newer), readClaim(older)]
  const isSwapped = meets(now.wanted, before.unwanted) && meets(now.unwanted, before.wanted)
  const isAllowed = before.wanted.length === 0 && now.unwanted.length === 0 && isSame(before.unwanted, now.wanted)
  const isForbidden = now.wanted.length === 0 && before.unwanted.length === 0 && isSame(before.wanted, now.unwanted)
  return isSwapped || isAllowed || isForbidden || differsInNumber(newer, older)
}
