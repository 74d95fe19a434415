/** Makes a value at its first use: a start of OpenCode does not wait for patterns that few messages need (docs/adr/0003). */
const once = <T>(make: () => T): (() => T) => {
  let made: { readonly value: T } | undefined
  return () => {
    made ??= { value: make() }
    return made.value
  }
}

/** Marks that end a sentence; those of scripts without blanks end one without a blank after them. */
const SENTENCE_END = /(?<![.!?…])[.!?…]+["'”’»)\]]*(?=\s)|(?<![。！？｡।॥؟۔])[。！？｡।॥؟۔]+[」』”’）)]*/gu

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
const greeting = once(() => new RegExp(`^(?:${GREETINGS})(?: [\\p{L}\\p{M}]+){0,2}\\s*[,.!:;،，、。！–—-]+\\s*`, "iu"))

/** Removes a greeting, with a name or two, from the beginning of a sentence. */
export const withoutGreeting = (sentence: string): string => sentence.replace(greeting(), "")

/*
 * A sentence that takes up a task: it begins with a verb that takes up work, and the id stands right behind it (in Japanese,
 * Korean and Hindi right before it). Behind the id the sentence ends, or goes on with a word that leaves the order as it is.
 * So a denial, a condition, a comparison and a question take up nothing. The languages are those of
 * test/fixtures/task-mentions.jsonl. The patterns have no flag `u`, so that U+017F is no s.
 */

/** Not part of a longer name, or of a file's. */
const ID = "(?<id>(?:ts|ep)-[0-9a-f]{4,12})(?![\\w-]|[./]\\w)"
const ANY_ID = /(?<![\w-])(?:ts|ep)-[0-9a-f]{4,12}(?![\w-]|[./]\w)/gi

/** The ids of prog's that stand in a line, in lower case. */
export const idsIn = (line: string): string[] => [...line.matchAll(ANY_ID)].map(([id]) => id.toLowerCase())

const oneOf = (...alternatives: readonly string[]): string => `(?:${alternatives.join("|")})`

const LEADS = oneOf(
  "(?:ok|okay|now|next|then|so|first)[,.:!]? |(?:yes|no|great|good|alright),? ?[,.:!] ?|please,? |go ahead and |let['\u2019]s |let us ",
  "i (?:want|need|would like) you to |i['\u2019]d like you to ",
  "(?:jetzt|nun|dann|so|als nächstes),? |(?:ja|gut|nein), |bitte |mal ",
  "(?:maintenant|alors|ensuite)[, ] ?|(?:oui|bon|bien|non), |s'il (?:te|vous) pla[iî]t,? |(?:stp|svp),? ",
  "ahora,? |luego |(?:bien|vale|bueno|sí|no), |por favor,? |agora,? |(?:certo|bem|sim), ",
  "(?:теперь|сейчас|затем),? |(?:хорошо|так|да|нет), |пожалуйста,? ",
  "(?:现在|接下来|那么?|好的?)[，, ]?|(?:请|請|麻烦)(?:你|您)?|帮我|幫我",
  "(?:الآن|ثم)[،,]? |(?:حسنا|نعم)[،,] |من فضلك[،,]? |رجاء[،,]? ",
)
const ASKS = oneOf(
  "(?:can|could|would|will) you ",
  "(?:kannst|könntest|magst|würdest) du ",
  "(?:peux|pourrais)-tu |(?:pouvez|pourriez)-vous |(?:tu peux|vous pouvez) ",
  "(?:puedes|podrías|puede|podría) |(?:você )?(?:pode|poderia|consegue) ",
  "(?:ты )?(?:можешь|можете|мог бы ты|могла бы ты|могли бы вы) ",
  "(?:你|您)?(?:能不能|可不可以|能否|可否|可以|能)",
  "هل (?:يمكنك|تستطيع|بإمكانك) ",
)
const DE_FILLER = "(?:bitte |jetzt |nun |mal )*"
const VERBS = oneOf(
  "work on|(?:start|begin|continue|resume)(?: (?:with|on|(?:to )?work on|working on))?|keep (?:working on|going (?:on|with))",
  "(?:go|carry) on with|get (?:started|going) (?:on|with)|pick up|take(?: (?:up|over|on))?|implement|do|fix|finish|tackle|solve",
  "proceed with|(?:move on|switch|(?:go |get )?back) to",
  `(?:arbeite ${DE_FILLER}(?:weiter )?|mache? ${DE_FILLER}weiter |weiter )(?:an|mit)|mache? ${DE_FILLER}(?:mit|an)|mache?`,
  `fange? ${DE_FILLER}(?:an )?mit|(?:beginne?|starte?) ${DE_FILLER}mit|(?:starte|setze?|führe?|übernimm|bearbeite|erledige|implementiere|behebe|löse)`,
  `nimm dir|kümmere? dich ${DE_FILLER}um`,
  "travaille[zr]? sur|continue[zr]?(?: (?:avec|sur|à travailler sur))?|reprend(?:s|re)|reprenez|commence[zr]?(?: (?:par|avec))?",
  "poursui(?:s|vre|vez)|implémente[zr]?|corrige[zr]?|termine[zr]?|occupe-toi de|occupez-vous de|passe[zr]? à|mets-toi à|prends",
  "trabajar? en|contin[uú]ar?(?: con)?|sigue(?: trabajando en| con)|seguir con|empi?eza[r]?(?: con| por)?|comi?enzar?(?: con)?",
  "retomar?|reanudar?|implementar?|corrige|arreglar?|terminar?|haz|encárgate de|ocúpate de",
  "trabalh(?:e|a|ar) (?:em|na)|continu(?:e|ar?)(?: com)?|com(?:ece|eça|eçar)(?: com| por| pela)?|retom(?:e|ar?)|prossiga(?: com)?",
  "implement(?:e|ar?)|corrija|termin(?:e|ar?)|faça|assuma|inici(?:e|ar?)",
  "(?:по)?работай(?:те)? над|поработать над|продолж(?:и|ите|ай|айте|ить|ать)(?: (?:работу над|работать над|с))?|начн(?:и|ите)(?: (?:с|работу над))?",
  "начать(?: с)?|возьм(?:и|ите)(?:сь за)?|займ(?:ись|итесь)|заняться|сделай(?:те)?|реализуй(?:те)?|исправь(?:те)?|доделай(?:те)?|заверши(?:те)?",
  "верни(?:сь|тесь) к|переходи(?:те)? к|приступа?й?и?(?:те)? к",
  "(?:ال)?عمل على|اعمل على|(?:واصل|مواصلة|تابع|متابعة|أكمل|إكمال)(?: العمل على)?|استمر في|استأنف|ابدأ(?: العمل على| في| بـ?)?|نف[ذّ]+|أصلح|تول[ىَّ]*",
)
/** Written without a blank behind it. */
const UNSPACED_VERBS =
  "(?:帮我|帮忙)?(?:继续|繼續|开始|開始|接着|着手)?(?:处理|處理|完成|接手|实现|修复|推进|开发|进行|做)(?:一下)?|继续|繼續|开始|開始|恢复"
const NOUNS = oneOf(
  "(?:(?:the|die|der|den) )?(?:task|epic|ticket|issue|aufgabe) ",
  "(?:la )?(?:tâche|tarea) |(?:a )?tarefa |задач(?:у|ей|е|а|и) |المهمة |(?:任务|任務) ?",
)
const VERB_FIRST = `^[¿ ]*(?:${LEADS})*(?<asks>${ASKS})?(?:${LEADS})*(?:${VERBS} |(?:${UNSPACED_VERBS}) ?)(?:${NOUNS})?${ID}(?<rest>[^]*)$`

/** German infinitives, and the languages whose verbs come last. */
const VERB_LAST: readonly string[] = [
  `^(?:bitte |jetzt )*(?<asks>(?:kannst|könntest|würdest) du )?(?:bitte |jetzt )*(?:an |mit )?(?:(?:der|die) aufgabe )?${ID} (?:bitte |jetzt )*(?:weiter(?:machen|arbeiten|führen)|fortsetzen|übernehmen|bearbeiten|erledigen|umsetzen|anfangen|beginnen|arbeiten)(?<rest>[^]*)$`,
  `^(?:(?:では|じゃあ|それでは|次は|今度は|まず)[、, ]?)*(?:タスク ?)?${ID} ?(?:の(?:作業|続き|実装|対応|修正))? ?(?:[をに]|から)? ?(?:お願い|(?:続けて|続行して|継続して|進めて|始めて|開始して|着手して|再開して|取り組んで|やって|対応して|実装して|修正して|引き継いで|仕上げて|担当して)(?:(?<asks>くれ|もらえ|いただけ)|ください|下さい|ほしい|(?=[、。,.!！]|$)))`,
  `^(?:(?:이제|자|그럼|다음은|먼저)[,.!]? )*(?:(?:작업|태스크) )?${ID} ?(?:작업[을를]?|[을를에]|부터)? ?(?:(?:계속|이어서|다시|마저) )?(?:(?:작업|진행|처리|시작|착수|수정|구현|재개|계속|마무리)[을를]? ?)?(?:[해맡]아? ?(?:(?<asks>줄 수 있|주실 수 있|줄래|주시겠)|줘|주세요|주십시오)|하세요|하십시오|하자|부탁)`,
  `^(?:(?:कृपया|अब|पहले),? )*(?<asks>क्या (?:आप|तुम) )?(?:कृपया )?${ID} (?:(?:पर|को|का|से) )?(?:काम )?(?:(?:जारी|शुरू|पूरा|ठीक|लागू) )?(?:करो|करें|कीजिए|कर दो|कर सकत[ेी]|रखो|रखें|रखिए)(?=[\\s।.,!?]|$)`,
]

/** A mark that does not end a quotation, or a word of those that leave the order as it is. */
const GOES_ON = `^(?:$|\\s*[(.,;:!?…，。！？；：、،؟।](?!["'”’»])|\\s+[–—-]+\\s|\\s*(?:吧|并|然后|而且|但|不过|吗|的工作|的开发)|\\s+(?:و\\p{L}|${oneOf(
  "and|but|then|now|please|today|again|first|next|from (?:where|scratch|the)|with|without|until|till|before|so|using|by|asap|right|immediately|instead|carefully|where",
  "und|aber|bitte|jetzt|heute|zuerst|als nächstes|weiter|fort|an|vor|um|ohne|bis|mit|dann",
  "et|mais|puis|maintenant|aujourd'hui|d'abord|s'il|stp|svp|sans|avant|avec",
  "y|e|pero|ahora|hoy|por favor|primero|sin|hasta|antes|con|mas|agora|hoje|primeiro|sem|até|com",
  "и|но|а|сейчас|сегодня|пожалуйста|сначала|без|до|затем|дальше",
  "ثم|لكن|الآن|اليوم|من فضلك|دون|بدون|حتى|قبل|رجاء",
)}(?![\\p{L}\\p{M}])))`
const BETWEEN =
  "\\s*(?:weiter|fort|an|vor|um|吧|please|today|again|bitte|jetzt|heute|aujourd'hui|hoy|hoje|por favor|сегодня|пожалуйста)"
/** An order for another time, an example, or a denial behind the id. */
const IS_LATER = `^(?:${BETWEEN})+ (?:not|nicht|no|não|не)(?![\\p{L}\\p{M}])|^(?:${BETWEEN})*[\\s.,;:!…，。；：、،–—-]*(?:(?:but|and|aber|und|mais|et|pero|y|mas|e|но|а|и) |但是?|不过|و?لكن |و)?${oneOf(
  "not (?:yet|now|today|before|until)|next (?:week|month|time)|only|later|tomorrow|when|once|after|if|unless|soon|for example|e\\.g",
  "nicht (?:jetzt|heute)|(?:jetzt|heute) nicht|noch nicht|erst|nur|später|morgen|wenn|sobald|nachdem|falls|zum beispiel|z\\.b",
  "pas (?:maintenant|encore|aujourd)|plus tard|demain|quand|lorsque|dès|après|si|seulement|par exemple",
  "(?:no|todavía no|aún no|não|ainda não) (?:ahora|hoy|agora|hoje)|todavía no|aún no|ainda não|más tarde|mais tarde|mañana|amanhã|cuando|quando|después|depois|se|solo|só|por e[jx]emplo",
  "не (?:сейчас|сегодня)|пока не|позже|потом|завтра|когда|после|если|только|например",
  "先?等|先别|先不|不是现在|以后|之后|如果|明天|稍后|ليس|غدا|لاحقا|عندما|بعد|إذا",
)}(?!\\p{Script=Latin}|\\p{Script=Cyrillic})`
const patterns = once(() => ({
  orders: [VERB_FIRST, ...VERB_LAST].map((pattern) => new RegExp(pattern, "i")),
  goesOn: new RegExp(GOES_ON, "iu"),
  isLater: new RegExp(IS_LATER, "iu"),
}))
const IS_QUESTION = /[?？؟]["'”’»)\]]*$|吗[。.]?$/

/** The verb and the id stand in the first characters; it also bounds the time that the patterns take. */
const ORDER_CHARACTERS = 120

/** @returns the id, as it is written, of the task that a sentence takes up */
const takenUp = (sentence: string): string | undefined => {
  const { orders, goesOn, isLater } = patterns()
  const said = withoutGreeting(sentence)
  if (said.search(ANY_ID) > ORDER_CHARACTERS) return undefined
  for (const pattern of orders) {
    const { id, asks, rest = "" } = pattern.exec(said)?.groups ?? {}
    if (id === undefined) continue
    if (IS_QUESTION.test(said) && asks === undefined) return undefined
    return goesOn.test(rest) && !isLater.test(rest) ? id : undefined
  }
  return undefined
}

/** An indent, and the marks of quotations, lists, headings, tables and quotes. */
const IS_QUOTED = /^(?:\s|[>|#+-]|\*\s|\d+[.)]\s|["'“„«‘「(])/
const QUOTES = /"[^"]*(?:"|$)|“[^“”]*”|«[^«»]*»|„[^„“”]*[“”]|「[^「」]*」/g
const CODE = /`([^`]*)`/g
const IS_ID = new RegExp(`^${ID}$`, "i")

/**
 * Finds the tasks that the sentences of a line take up, in lower case. Linear in the length of the line.
 *
 * @param line without its line end; outside code fences
 * @param isWrapped it goes on with the sentence of the line above
 */
export const tasksTakenUp = (line: string, isWrapped: boolean): string[] => {
  if (idsIn(line).length === 0 || IS_QUOTED.test(line)) return []
  const said = line
    .replace(QUOTES, '""')
    .replace(CODE, (_, code: string) => (IS_ID.test(code) ? code : '""'))
    .replaceAll("*", "")
    .replaceAll(/\s+/g, " ")
  return sentencesOf(said).flatMap((sentence, at) => {
    if (isWrapped && at === 0) return []
    const id = new Set(idsIn(sentence)).size === 1 ? takenUp(sentence) : undefined
    return id === undefined ? [] : [id.toLowerCase()]
  })
}
