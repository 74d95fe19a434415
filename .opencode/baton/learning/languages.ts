import { foldText } from "../host/text.ts"
import { CHINESE } from "./chinese.ts"
import { ENGLISH } from "./english.ts"
import { FRENCH } from "./french.ts"
import { GERMAN } from "./german.ts"
import type { Rules } from "./signals.ts"
import { SPANISH } from "./spanish.ts"

/** Small words that tell a language, without accents. A language without rules keeps its sentences from the others' rules. */
const WORDS: readonly { readonly words: string; readonly letters: RegExp; readonly rules?: Rules }[] = [
  {
    words:
      "the and is are was it this that these those with for from not but you we they i my our your be been should would will can't don't dont of to in on at by as or if when what which how there here its it's that's i'm let's has have had an every any all only never always also than then them their so because before after into out up over instead use uses used rather prefer make keep want new same no nope unless without please do must files tests first write about",
    letters: /(?!)/g,
    rules: ENGLISH,
  },
  {
    words:
      "der die das und ist nicht ein eine einen einer dem den mit fur auf von zu im in am auch aber nur wir ihr sie bitte statt sondern wenn dass kein keine keinen keiner lieber immer falsch nimm gestern nein nee nie niemals stets hier ohne bevor vor jede jeder jedem jeden alle ab jetzt nach beim verwende verwenden benutze benutzen nutze nutzen wird werden muss mussen soll sollen darf du ich es so bei diesem dieses dieser zuerst schreib schreibe mach sind hat vorher neue neuen haben uns englisch deutsch",
    letters: /[äöüß]/g,
    rules: GERMAN,
  },
  {
    words:
      "el los la las una unos un que con para por pero como esta este esto eso mas muy tambien porque otra otro usa usar hace donde ya lo le es en de del al lugar no nunca siempre sin nada aqui usamos proyecto mejor antes vez y se su si hay debe debes tienes primero ni entre cada todos todas codigo pruebas solo nos hemos vamos",
    letters: /[ñ¿¡áíóú]/g,
    rules: SPANISH,
  },
  {
    words:
      "le la les des une un est pas dans pour avec sur ce cette ces qui ne mais ou je tu vous nous il elle au aux du de d' en et plutot toujours jamais autre non ici on utilise utiliser projet sans avant chaque que comme ca d'abord tous toutes doit dois faut c'est n'est qu'on l' y existe deja",
    letters: /[çêèàùœîâôû]/g,
    rules: FRENCH,
  },
  {
    words:
      "il gli della delle di che non per sono una usa questo questa anche piu perche altra altro quella quello gia prova la le un con del e in sempre mai nel funzione c'e crearne metodo favore",
    letters: /[ìò]/g,
  },
  {
    words:
      "o os um uma nao com para em do da dos das isso este esta voce mas mais tambem jeito outra vez cliente use usa no sempre nunca e que de ao prefiro funcoes esta funciona",
    letters: /[ãõ]/g,
  },
  {
    words:
      "het een van niet en voor met op te maar ook liever graag gebruik plaats deze dit wij jij nee de is in geen altijd nooit",
    letters: /(?!)/g,
  },
  {
    words: "och att det som for med inte den till av pa ar istallet nej jag vi anvand alltid aldrig og ikke er",
    letters: /[åæø]/g,
  },
  {
    words: "nie jest sie na tego tej jak ale innej innego uzyj zawsze nigdy prosim vzdy pis testy uzywaj any",
    letters: /[ąćęłńśźżěščřžýůď]/g,
  },
]

const LANGUAGES = WORDS.map(({ words, ...language }) => ({ ...language, words: new Set(words.split(" ")) }))

/** The languages that sentences are learned in. */
export const LANGUAGE_RULES = { en: ENGLISH, de: GERMAN, es: SPANISH, fr: FRENCH, zh: CHINESE } as const

const HAN = /\p{Script=Han}/gu
/** Japanese and Korean text, and all other scripts. */
const OTHER_SCRIPT = /[^\p{Script=Latin}\p{Script=Han}\P{L}]/gu
const OTHER_SHARE = 0.04
const LETTER_WEIGHT = 2

/** @returns how much speaks for each of `LANGUAGES` */
const score = (text: string): number[] => {
  const lower = text.toLowerCase().normalize("NFC")
  const words = foldText(text).match(/[a-z]+(?:'[a-z]+)?|[dl]'/g) ?? []
  return LANGUAGES.map(
    ({ words: known, letters }) =>
      words.filter((word) => known.has(word)).length + (lower.match(letters)?.length ?? 0) * LETTER_WEIGHT,
  )
}

/**
 * @returns a function that gives the rules of the languages that a sentence of the message may be in: of two or more, when its
 *   words do not tell. Linear in the sentence's length.
 */
export const createRuleFinder = (message: string): ((sentence: string) => readonly Rules[]) => {
  let ofMessage: number[] | undefined
  return (sentence) => {
    const letters = sentence.match(/\p{L}/gu)?.length ?? 0
    if (letters === 0 || (sentence.match(OTHER_SCRIPT)?.length ?? 0) > letters * OTHER_SHARE) return []
    if ((sentence.match(HAN)?.length ?? 0) > 1) return [CHINESE]
    let scores = score(sentence)
    if (scores.every((one) => one === 0)) {
      ofMessage ??= score(message)
      scores = ofMessage
    }
    const most = Math.max(...scores)
    return LANGUAGES.flatMap(({ rules }, at) => (rules && scores[at] === most ? [rules] : []))
  }
}
