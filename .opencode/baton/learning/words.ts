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

/** Plural and tense off, so that "tests" and "testing" meet "test". Names with signs in them stay as they are. */
const stem = (word: string): string => {
  if (!/^[a-z]{4,}$/.test(word)) return word
  const base = word.replace(/(?:ies)$/, "y").replace(/(?:(?<=[^aeious])s|(?<=(?:ss|sh|ch|x))es)$/, "")
  return base.replace(/(?<=\w{3})(?:ing|ed)$/, "").replace(/([b-df-hj-np-tv-z])\1$/, "$1")
}

const unquoted = (word: string): string => word.replace(/^[@$]+(?=\w)|[./-]+$/g, "")

/** The words of a text that carry what it is about, in their order, lower case and stemmed. */
export const contentWords = (text: string): string[] =>
  (text.toLowerCase().replaceAll(/[’']/g, " ").match(WORD) ?? [])
    .map(unquoted)
    .filter((word) => word !== "" && !SMALL.has(word))
    .map(stem)
