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
    "m s t d ll re ve didn doesn isn wasn shouldn couldn wouldn won cannot"
  ).split(" "),
)

const WORD = /[\p{L}\p{N}_$@][\p{L}\p{N}_$.+#/@-]*/gu

/** Removes plural and tense endings, so that "tests" and "testing" match "test". Words with other characters stay unchanged. */
const stem = (word: string): string => {
  if (!/^[a-z]{4,}$/.test(word)) return word
  const base = word.replace(/(?:ies)$/, "y").replace(/(?:(?<=[^aeious])s|(?<=(?:ss|sh|ch|x))es)$/, "")
  return base.replace(/(?<=\w{3})(?:ing|ed)$/, "").replace(/([b-df-hj-np-tv-z])\1$/, "$1")
}

const unquoted = (word: string): string => word.replace(/^[@$]+(?=\w)|[./-]+$/g, "")

/** Returns the words that carry a text's meaning, in order, lower case and stemmed. */
export const contentWords = (text: string): string[] =>
  (text.toLowerCase().replaceAll(/[’']/g, " ").match(WORD) ?? [])
    .map(unquoted)
    .filter((word) => word !== "" && !SMALL.has(word))
    .map(stem)

/** Words of any work on software, and of any English: they name no subject. */
const COMMON = (
  "able accept act actual ad admin after afterwards against ago allow almost alone along already although among " +
  "amount annual answer anything apart api app apparent application apply april area argument around array arrive " +
  "aside ask aspect attempt attention august average aware away back bare base basic basis become before begin " +
  "behind believe belong below beside between big billion bit body borrow bother bottom bounce box break bright " +
  "bring broad broken build busy button buy call care careful carry case catch category cause central certain " +
  "chance cheap check choice choose circle claim class clean clear click client climb close cold colleague collect " +
  "column combine come command commit common company compare complain component compute computer concern condition " +
  "config connect consider constant contact contain content context continue convert copy corner cost count couple " +
  "course cover create cross current customer cut daily danger dangerous dark data date day dead deal dear december " +
  "decide decision decrease deep default define degree delay delete deliver demand depend deploy describe desk " +
  "detect develop developer differ difference different difficulty direct direction dirty disappear discover divide " +
  "document double doubt dozen drag draw drive drop dry due eager early easy eat edge edit effect effort eight " +
  "either element eleven else empty encounter end endpoint engineer enough enter entry environment equal era error " +
  "escape essential establish even evening event ever evidence exact examine example exception exclude execute " +
  "exist expect experience explain express extend external extra face fact factor fail failure fair fall false " +
  "familiar famous far fast feature february fetch field fifty fight figure fill filter final find fine finish " +
  "first fit five flag fly folder follow force foreign forget form format former four fourth frame free fresh " +
  "friday front full function funny further future gain gather general generate give global goal gone grab grand " +
  "grant great ground group grow guess guide guy habit half hand handle hang happen hard hate head header hear " +
  "heavy height help hide high history hit hold hole home honest hope hot hour hourly house huge hundred hurt idea " +
  "ideal identical identify ignore ill image imagine immediate impact implement import important impossible improve " +
  "include increase independent index indicate individual inform information initial inner input insert inside " +
  "install instance intend interest internal internet introduce invalid invite involve issue item january job join " +
  "july jump june junior key kind know knowledge lack land laptop large last late latter launch law lay layer lazy " +
  "lead learn least leave length less lesson letter level library lie life lift likely limit link list listen " +
  "little live load local log logic lonely long look loop loose lose loss loud low luck lucky machine main major " +
  "man manage map march mark mass match material matter maximum mean measure meet member mention mere merely " +
  "message method middle million mind minimum minor minute miss missing mistake mixed mode model modern modify " +
  "module moment monday month monthly morning move movement multiple name native natural nature near neat necessary " +
  "negative nervous neutral next nice night nightly nine none noon normal note nothing notice november number " +
  "numerous object observe obtain obvious occur october odd off offer office official often once open operate " +
  "opinion opportunity option order ordinary organize origin original outer output outside overall overwrite owner " +
  "package page pair paper parallel parameter part particular pass past path pattern pay peak people per percent " +
  "perfect period permanent permit person personal phase phone pick piece place plain plan play pleasant point poor " +
  "popular position positive possibility possible potential practice precise prepare presence present preserve " +
  "press pressure pretend pretty prevent previous primary principle print priority private problem procedure " +
  "process prod produce product production program progress prohibit project promise proof proper property proposal " +
  "protect proud prove provide provider public publish pull pure purpose push quality quantity quarter query " +
  "question quick quiet quite raise random range rank rare rate raw reach react read reader ready real reality " +
  "reason receive recent recognize recommend record recover reduce refer reference refuse regard region regular " +
  "reject relate relation relative release relevant reliable remain remember remove render repair repeat replace " +
  "report repository represent request require resolve resource respect respond response rest restart restore " +
  "result retry return reuse reveal rich ring rise risk role roll room rotate rough round routine row rule run sad " +
  "safe saturday save scale scan scene scheme scope screen script search second secondary section see seem select " +
  "send senior sense sensible sentence separate september sequence series serious server service session set " +
  "setting seven several severe shape share sharp shift ship shop short shout show shrink shut sick side sign " +
  "silent similar simple simply single sit site situation six size skill skip sleep slight slow small smart smooth " +
  "soft solid solution solve soon sort source space speak special specific speed spend spot spread stable staff " +
  "stage stand standard start state statement status stay step stick store story straight strange strict strike " +
  "string strong structure struggle stuff stupid style subject success sudden suffer sufficient suggest suitable " +
  "sum sunday superfluous supply support suppose sure surface surprise survive suspect swap sweet switch symbol " +
  "system table tag take tall target task teach team tell temporary ten tend text theory think third thirty though " +
  "thousand three through throw thursday tie time tiny tired title today together tomorrow tool top topic total " +
  "touch tough toward track trade train transfer travel treat trend trial trigger trip triple trouble true trust " +
  "truth tuesday turn twelve twenty twice type typical ugly unable understand unique unit unknown unlikely until " +
  "unusual update upgrade upper urgent usage useful user usual valid value variable various vast version via view " +
  "virtual visible visit visitor vital voice volume walk wall warm warn waste watch wave weak wear web wednesday " +
  "week weekend weekly weight weird wet whole wide width wild win wise wish within woman wonder word world worry " +
  "worse worst worth wrap year yearly yesterday yet young zero zone"
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
const COMMON_ROOTS = new Set(COMMON.map((word) => rootOf(stem(word))))

export const isCommon = (root: string): boolean => COMMON_ROOTS.has(root)

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
const NEGATION = /\b(?:not|never|no|avoid|stop|without)\b|n['’]?t\b|\binstead of\b|\brather than\b|\bover\b/gi

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
const isWithin = (some: readonly string[], others: readonly string[]): boolean =>
  some.length > 0 && some.every((word) => others.includes(word))

const NUMBER = /\b\d+\b/g
/** True for "4 spaces" and "2 spaces": the same words, another number. */
const differsInNumber = (one: string, other: string): boolean => {
  const [first, second] = [contentWords(one).join(" "), contentWords(other).join(" ")]
  const words = contentWords(one.replaceAll(NUMBER, "")).length
  return words >= 1 && first !== second && first.replaceAll(NUMBER, "#") === second.replaceAll(NUMBER, "#")
}

/**
 * Tells whether a newer sentence revokes an older one. Certain cases only: each wants what the other rules out, one rules out
 * exactly what the other wants, or they differ in nothing but a number. Pure.
 */
export const contradicts = (newer: string, older: string): boolean => {
  const [now, before] = [readClaim(newer), readClaim(older)]
  const isSwapped = meets(now.wanted, before.unwanted) && meets(now.unwanted, before.wanted)
  const isAllowed = before.wanted.length === 0 && now.unwanted.length === 0 && isWithin(before.unwanted, now.wanted)
  const isForbidden = now.wanted.length === 0 && before.unwanted.length === 0 && isWithin(before.wanted, now.unwanted)
  return isSwapped || isAllowed || isForbidden || differsInNumber(newer, older)
}
