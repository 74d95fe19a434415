/** The commonest small words. One that two of the languages share says nothing and is in none of the lists. */
const ENGLISH =
  "the and is are was it this that these those with for from not but you we they i my our your be been should would will can't don't of to in on at by as or if when what which how there here its it's that's i'm let's has have had an every any all only never always also than then them their so because before after into out up over instead use rather prefer make keep want new same"
const OTHERS =
  "el los las una unos que con para por pero como está esta esto eso más muy también porque otra otro usa usar hace donde ya lo le es en de del al lugar " +
  "der die das und ist nicht ein eine einen dem den mit für auf von zu im am auch aber nur wir ihr sie bitte statt sondern wenn dass kein keine lieber immer falsch nimm gestern " +
  "le la les des une est pas dans pour avec sur ce cette ces qui ne mais ou où je tu vous nous il elle au aux du plutôt toujours jamais autre " +
  "il gli della delle di che non per sono una usa questo questa anche più perché altra altro quella quello già prova " +
  "o os um uma não com para em do da dos das isso este esta você mas mais também jeito está outra vez cliente " +
  "het een van niet en voor met op te maar ook liever graag gebruik plaats deze dit wij jij nee " +
  "och att det som för med inte den till av på är istället nej jag vi använd " +
  "nie jest się na tego tej jak ale innej innego użyj"

const ENGLISH_WORDS = new Set(ENGLISH.split(" "))
const OTHER_WORDS = new Set(OTHERS.split(" "))
for (const word of ENGLISH_WORDS) if (OTHER_WORDS.delete(word)) ENGLISH_WORDS.delete(word)

/** Letters that English words do not have; loan words and names have one at most. */
const FOREIGN_LETTERS = /[^\p{Script=Latin}\P{L}]|[ñãõßąćęłńśźżåæøœ¿¡]|[àâäçèéêëìíîïòóôöùúûü]/giu
const FOREIGN_SHARE = 0.04

/**
 * Whether the patterns for English may look at a text. They misfire on others: "no, use" is Spanish as well.
 *
 * @param text a whole message of a user's own words, in any case
 */
export const isEnglish = (text: string): boolean => {
  const lower = text.toLowerCase().replaceAll("’", "'")
  const letters = lower.match(/\p{L}/gu)?.length ?? 0
  if (letters === 0 || (lower.match(FOREIGN_LETTERS)?.length ?? 0) > letters * FOREIGN_SHARE) return false
  let [english, other] = [0, 0]
  for (const word of lower.match(/[\p{L}']+/gu) ?? []) {
    if (ENGLISH_WORDS.has(word)) english += 1
    else if (OTHER_WORDS.has(word)) other += 1
  }
  return other < 2 ? other <= english : other * 2 < english
}
