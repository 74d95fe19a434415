/** Marks that end a sentence; those of scripts without blanks end one without a blank after them. */
const SENTENCE_END = /[.!?…]+["'”’»)\]]*(?=\s)|[。！？｡।॥؟۔]+[」』”’）)]*/gu

/** A number, a letter, letters with full stops (e.g., z.B.), and short words that are cut. */
const ABBREVIATION =
  /(?:^|[\s(])(?:\d{1,2}|\p{L}|(?:\p{L}\.)+\p{L}|cf|vs|etc|approx|resp|incl|nr|fig|mr|mrs|ms|dr|st|bzw|usw|ggf|ca|evtl|inkl|vgl|ej|env|напр|др|см)\.$/iu
const ABBREVIATION_CHARACTERS = 12

/** Splits a line at the ends of its sentences, in any script. The sentences keep their marks; none is blank. */
export const sentencesOf = (line: string): string[] => {
  const sentences: string[] = []
  let start = 0
  for (const { 0: mark, index } of line.matchAll(SENTENCE_END)) {
    const end = index + mark.length
    if (mark === "." && ABBREVIATION.test(line.slice(Math.max(start, end - ABBREVIATION_CHARACTERS), end))) continue
    sentences.push(line.slice(start, end).trim())
    start = end
  }
  return [...sentences, line.slice(start).trim()].filter((sentence) => sentence !== "")
}

const GREETINGS =
  "hi|hello|hey|good (?:morning|afternoon|evening)|hallo|moin|servus|guten (?:morgen|tag|abend)|bonjour|bonsoir|salut|hola|" +
  "buenos días|buenas(?: tardes| noches)?|olá|oi|bom dia|boa (?:tarde|noite)|привет|здравствуйте|добрый (?:день|вечер)|ciao|" +
  "你好|您好|大家好|こんにちは|こんばんは|おはよう(?:ございます)?|お疲れ様です|안녕하세요|안녕|مرحبا|مرحبًا|أهلا|السلام عليكم|नमस्ते|नमस्कार"
const GREETING = new RegExp(`^(?:${GREETINGS})(?: [\\p{L}\\p{M}]+){0,2}\\s*[,.!:;،，、。！–—-]+\\s*`, "iu")

/** Removes a greeting, with a name or two, from the beginning of a sentence. */
export const withoutGreeting = (sentence: string): string => sentence.replace(GREETING, "")
