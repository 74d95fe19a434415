import { splitLines } from "../host/messages.ts"
import { cutText, onOneLine } from "../host/text.ts"
import { sentencesOf, withoutGreeting } from "./naming.ts"
import { fenceAfter, unquoteArgument } from "./parse.ts"

/** A title comes from the beginning of a message; behind it are logs and pasted files. */
const READ_CHARACTERS = 10_000
export const TITLE_CHARACTERS = 80
/** Shorter sentences are greetings, labels and interjections. */
const LEAST_WORDS = 4
const LEAST_HEADING_WORDS = 3

/** Cuts a title at a blank, and marks that it did. */
export const shortTitle = (text: string): string => {
  const line = onOneLine(text)
  if (line.length <= TITLE_CHARACTERS) return line
  const cut = cutText(line, TITLE_CHARACTERS - 1)
  return `${cutText(cut, Math.max(cut.lastIndexOf(" "), TITLE_CHARACTERS / 2)).trimEnd()}…`
}

/** Scripts that put no blanks between words. */
const UNSPACED =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u
const words = new Intl.Segmenter(undefined, { granularity: "word" })

/** More than enough for the fewest words; a dictionary's time for a run without a blank grows faster than the run. */
const COUNTED_CHARACTERS = 200

/** An address or a path is one word. */
const countWords = (sentence: string): number => {
  let count = 0
  for (const token of sentence.split(/\s+/)) {
    if (UNSPACED.test(token)) {
      const segments = [...words.segment(cutText(token, COUNTED_CHARACTERS))]
      count += segments.filter(({ isWordLike }) => isWordLike).length
    } else if (/[\p{L}\p{N}]/u.test(token)) count += 1
  }
  return count
}

/** The line above quoted mail, as `On Mon, … wrote:`. */
const MAIL_LINE = /wrote|schrieb|a écrit|escribió|escreveu|ha scritto|schreef|написал|пишет|<[^<>\s@]+@[^<>\s@]+>/iu
const isMailLine = (line: string): boolean => /[:：]$/.test(line.trimEnd()) && MAIL_LINE.test(line)
const FRONT_MATTER = /^---[ \t]*\r?\n(?:(?!---)[^\n]*\n)*---[ \t]*(?:\r?\n|$)/
const TAGS_ALONE = /^\s*(?:<[/!]?[\p{L}-][^<>]*>\s*)+$/u
/** A tag around the text, and not one that the text is about: `<Button> should be blue`. */
const TAG_AROUND = /^\s*<[\p{L}][\p{L}\p{N}_-]*>(?=\S)|(?<=\S)<\/[\p{L}][\p{L}\p{N}_-]*>\s*$/gu
const LINE_MARKS = /^\s*(?:(?:[#*+•–-]+|\d{1,3}[.)])(?:\s+|$)|\[[ xX]\]\s+)*/
const EMPHASIS = /\*\*|__/g

type Line = { readonly text: string; readonly isHeading: boolean }

/** The lines that a person wrote: no code, quotation, front matter, mail line or tag, and without the marks of lists. */
const proseLines = (message: string): Line[] => {
  const lines: Line[] = []
  let fence = ""
  for (const line of splitLines(message.replace(FRONT_MATTER, ""))) {
    const before = fence
    fence = fenceAfter(line, fence)
    if (before !== "" || fence !== "" || /^\s*>/.test(line) || isMailLine(line) || TAGS_ALONE.test(line)) continue
    const text = line.replace(TAG_AROUND, "").replace(LINE_MARKS, "").replace(EMPHASIS, "").trim()
    if (text !== "") lines.push({ text, isHeading: /^\s*#/.test(line) })
  }
  return lines
}

/** Beginnings of a sentence that asks for work, in the languages of test/fixtures/titles.jsonl. */
const REQUEST_START = new RegExp(
  `^(?:${[
    "(?:now |then |next,? )?(?:please|pls|let's|(?:can|could|would|will) (?:you|we|someone))",
    "i(?:'d| would) like you to|i (?:want|need) you to|would you mind",
    "bitte|lass uns|(?:kannst|könntest|magst|würdest) du|(?:können|könnten|würden) (?:sie|wir)",
    "(?:peux|pourrais)-tu|(?:pouvez|pourriez)-vous|peut-on|(?:tu|vous) (?:peux|pourrais|pouvez|pourriez)|s'il|merci de",
    "est-ce que (?:tu|vous)",
    "[¿ ]*(?:puedes|podrías|puede|podría|podéis|podemos)|por favor",
    "(?:você |vocês |tu )?(?:pode|poderia|podes|consegue|podemos)",
    "(?:ты |вы )?(?:можешь|можете|не могл?и? бы|мог(?:ла|ли)? бы)|пожалуйста|давай",
    "(?:请|請|麻烦|麻煩)|(?:你|您)?(?:能否|可否|能不能|可不可以|能|可以)|帮我|幫我",
    "هل (?:يمكنك|تستطيع|بإمكانك)|من فضلك|رجاء",
    "कृपया|क्या (?:आप|तुम)",
  ].join("|")})(?![\\p{Script=Latin}\\p{Script=Cyrillic}])[\\s,]*`,
  "iu",
)
/** Its end, where the verb comes last. */
const REQUEST_END =
  /(?:くれますか|くれませんか|もらえますか|もらえませんか|いただけますか|いただけませんか|ください|下さい|お願いします|줄 수 있[^\s]*|주실 수 있[^\s]*|주시겠[^\s]*|줄래요?|주세요|줘요?)[\s。.!！?？]*$/u

/** Asks for words and not for work: at the beginning, without what makes it polite. */
const QUESTION_START = new RegExp(
  `^[¿ ]*(?:${[
    "(?:briefly |quickly )?(?:explain|describe|tell (?:me|us)|show (?:me|us) (?:how|what|where|why|which)|clarify)",
    "(?:walk|talk) (?:me|us) through|help me (?:to )?understand|let me know|see (?:why|what|how|if)",
    "i (?:wonder|was wondering|don't understand|(?:want|would like) to (?:know|understand))|i'd like to (?:know|understand)",
    "what(?! (?:i|we) (?:need|want))|what's|why|who|whose|which",
    "how (?:do|does|did|is|are|can|could|should|would|come|many|much|long|often|to)",
    "where (?:do|does|did|is|are|can|was|were)|when (?:do|does|did|is|are|will|was)",
    "(?:do|does|did|is|are|was|were|has|have|should|would|can|could|will) (?:i|you|we|it|this|that|the|there|they|he|she)",
    "(?:mir |uns )?(?:bitte |mal |kurz )*(?:erkläre?|erläutere?|beschreibe?|sage?) ?(?:mir|uns)?|(?:mir|uns) .*(?:erklären|erläutern|sagen)",
    "warum|wieso|weshalb|was|wer|welche[rsn]?|wie (?:funktioniert|geht|kann|ist|wird|viele)|wo (?:ist|wird|steht|sind)|wann|gibt es|weißt du",
    "(?:m')?explique[rz]?|décris|dis-moi|me dire|pourquoi|comment|qu'est-ce|quel(?:le)?s?|où|combien|y a-t-il|que fait",
    "expl[ií]ca(?:me|rme)?|me explicas|dime|decirme|cuéntame|por qué|cómo|qué|cuál(?:es)?|dónde|cuándo|quién|hay",
    "(?:me )?expli(?:ca|que|car)(?:-me)?|me dizer|diga-me|por que|como (?:o|a|é|funciona|eu|posso|se)|o que|qual|quais|onde|quando é",
    "объясни(?:те|ть)?|расскажи(?:те)?|рассказать|подскажи(?:те)?|подсказать|опиши|поясни|почему|зачем|где|кто|сколько",
    "как (?:работает|устроен\\p{L}*|мне|можно|это)|что (?:такое|делает|это)|как(?:ой|ая|ие|ое)|есть ли",
    "(?:أن )?(?:ت|ا)?شرح|اشرح|أخبرني|لماذا|كيف|ما (?:هو|هي|الذي|معنى)|أين|متى|من هو|هل",
  ].join("|")})(?![\\p{L}\\p{M}])`,
  "iu",
)
/** The same, where such words stand anywhere. */
const QUESTION_WITHIN =
  /解释|解釋|说明一下|讲讲|讲一下|告诉我|告訴我|为什么|為什麼|怎么工作|如何工作|是什么|是什麼|什么是|在哪|説明して|教えて|なぜ|どうして|どうやって|どこ[にでが]|何が|知りたい|설명|알려|왜 |어떻게|어디|언제|누가|समझा|बता(?:ओ|इए|एं)|क्यों|कैसे|कहाँ|कौन/u

const CHATTER = new RegExp(
  `^(?:ok(?:ay)?,? )?(?:${[
    "thanks|thank you|thx|great|nice|perfect|awesome|cool|looks? (?:good|great|fine)|lgtm|sounds good|well done|never ?mind|sorry",
    "good (?:job|work)|how are you|go on|carry on|keep going|continue where|let me think|just testing|this is (?:just )?a test",
    "danke|vielen dank|super|prima|sieht gut aus|mach weiter|wie geht",
    "merci(?! de)|parfait|très bien|super|ça va|gracias|perfecto|muy bien|qué tal|obrigad[oa]|perfeito|muito bom|tudo bem",
    "спасибо|отлично|хорошо|супер|как дела",
    "谢谢|謝謝|感谢|很好|不错|ありがとう|いいね|了解|고마워|고맙|감사|좋아",
    "شكرا|شكرًا|ممتاز|جيد|धन्यवाद|शुक्रिया|बहुत अच्छा",
  ].join("|")})`,
  "iu",
)
/** The work that follows it in the same sentence. */
const WORK_BEHIND =
  /[,;–—-]\s*(?:and |but |und |aber |et |mais |y |pero |e |mas |и |а )?(?=(?:now|please|next|can you|could you|jetzt|bitte|maintenant|ahora|agora|теперь|пожалуйста)\s)/iu

type Kind = "request" | "question" | "chatter" | "statement"

const kindOf = (sentence: string): Kind => {
  if (CHATTER.test(sentence)) return "chatter"
  const rest = sentence.replace(REQUEST_START, "")
  const isRequest = rest !== sentence || REQUEST_END.test(sentence)
  if (QUESTION_START.test(rest) || QUESTION_WITHIN.test(sentence)) return "question"
  if (isRequest) return "request"
  return /[?？؟]["'”’»)\]]*$|[吗呢か][。.]?$/u.test(sentence) ? "question" : "statement"
}

const toSentences = ({ text, isHeading }: Line) =>
  sentencesOf(text).map((sentence) => {
    const greeted = withoutGreeting(sentence)
    const work = CHATTER.test(greeted) ? WORK_BEHIND.exec(greeted) : null
    const said = work ? greeted.slice(work.index + work[0].length) : greeted
    return { said, kind: kindOf(said), isLong: countWords(said) >= (isHeading ? LEAST_HEADING_WORDS : LEAST_WORDS) }
  })

/**
 * Gives the title of the task that a user's first message sets: its first sentence that says something, which is one of four
 * words or more (in a script without blanks, as many by the dictionary).
 *
 * @param message as the user typed it
 * @returns at most 80 characters; undefined for questions, thanks, a short message, a command, or another session's draft
 */
export const titleFrom = (message: string): string | undefined => {
  const text = cutText(unquoteArgument(message).trim(), READ_CHARACTERS)
  if (text.startsWith("/") || text.includes("Continuing work from session ")) return undefined
  const sentences = proseLines(text).flatMap(toSentences)
  const isWork = ({ kind, isLong }: (typeof sentences)[number]) =>
    isLong && (kind === "request" || kind === "statement")
  const said = sentences.filter(({ kind, isLong }) => kind === "question" || (isLong && kind !== "chatter"))
  const asks = [said[0], said.at(-1)].some((sentence) => sentence?.kind === "question")
  const work = sentences.filter(isWork)
  const first = asks ? work.find(({ kind }) => kind === "request") : work[0]
  if (!first) return undefined
  const title = shortTitle(first.said.replace(/(?<![\s.!?:。！？：｡।॥؟۔…])[\s.!?:。！？：｡।॥؟۔…]+$/u, ""))
  return title === "" ? undefined : title
}
