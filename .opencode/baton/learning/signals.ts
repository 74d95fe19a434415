/** Kinds of learning, the most important first. */
export const LEARNING_TYPES = ["correction", "decision", "preference", "anti_pattern", "pattern", "insight"] as const

export type LearningType = (typeof LEARNING_TYPES)[number]

export const isLearningType = (name: string): name is LearningType =>
  (LEARNING_TYPES as readonly string[]).includes(name)

/**
 * Patterns of a user's sentence that can be learned from. They see one sentence in lower case, without leading fillers and with
 * quotations masked. The first match decides; none guesses at a meaning.
 *
 * The design document's correction patterns are the minimum: all are here, with the word boundaries and clause starts that
 * exclude "framework", "no problem" and "actually works".
 */
export type Signal = { readonly type: LearningType; readonly pattern: RegExp }

/** @param sources regular expressions, with negative lookaheads only, each linear in the length of a sentence */
export const make = (type: LearningType, ...sources: readonly string[]): Signal[] =>
  sources.map((source) => ({ type, pattern: new RegExp(source, "u") }))

export const excludes = (...sources: readonly string[]): RegExp[] => sources.map((source) => new RegExp(source, "u"))

/** Matches nothing. */
export const NONE = /(?!)/

/** Reads one language's sentences: lower case and without accents, in a Latin script. */
export type Rules = {
  /** Leading words that say nothing. */
  readonly fillers: RegExp
  /** Another language's no, which a rule in this one may follow. */
  readonly otherNo: RegExp
  /** The first match decides: a sentence that both corrects and states a rule is a correction. */
  readonly signals: readonly Signal[]
  /** Sentences that teach nothing, even if a signal matches. */
  readonly exclusions: readonly RegExp[]
}

/** Words of a rule that outlives the moment it was said in. */
export const STANDING =
  /\b(?:always|never|from now on|going forward|every time|whenever|before you|immer|stets|grundsätzlich|nie|niemals|ab jetzt|ab sofort|siempre|nunca|jamás|a partir de ahora|toujours|jamais|systématiquement|désormais)\b|一律|始终|总是|永远|从不|以后|从现在|每次|绝对/i

/** Limits what is said to the task at hand, if the session has one; of a text as `foldText` makes it. */
export const ABOUT_TASK =
  /\b(?:only|this time|nur|diesmal|dieses mal|solo|solamente|esta vez|seulement|uniquement|cette fois)\b|只|仅|这次|这一次/

/** Rules about the agent's answers, which fit any request. */
export const ABOUT_ANSWERS =
  /^(?:please )?(?:keep|make) (?:your|the|all) (?:answers?|repl(?:y|ies)|responses?|explanations?|summar(?:y|ies))\b|\b(?:explain|answer|reply|write|talk|respond)\b.*\b(?:to me|simple words|in english|briefly)\b|^(?:bitte )?(?:antworte|erkläre?|schreib mir)\b|^(?:bitte )?(?:immer )?auf \S+ antworten\b|^(?:por favor,? )?(?:responde|contesta)\b|^(?:réponds|répondez)\b|(?:回答|回复)/i

/** Rules about commits, white space and the end of work, which fit any request that changes something. */
export const ABOUT_CHANGES =
  /\b(?:commit|push|merg|rebas|amend|branch|indent)\w*\b|\b(?:tabs|semicolons|(?:single|double) quotes|pull requests?|ramas?|branches?)\b|提交|推送|分支|\bbefore you (?:say|tell|finish|call|hand|stop|are done)/i

/** Limits a rule to a kind of work. */
export const SCOPED = /\b(?:in|for) (?:\w+ )*(?:tests?|specs?|files?|components?|modules?|scripts?|prod\w*)\b|\bwhen\b/i

const OPENING_REMARK =
  /^(?:\W*(?:no+(?:pe)?|nah|nein|nee|non|so nicht|nicht so|not (?:like (?:that|this)|(?:this|that) way)|not what (?:i|we) (?:meant|wanted)|i told you|wait|sorry|yeah|but|please|actually|instead|(?:that|this|it)(?:'s| is) (?:wrong|incorrect|not (?:right|correct)))\b[\s,.:;!–—-]*)+/i

/** Speaks of what was done or asked for. */
const ABOUT_WORK =
  /^(?:(?:that|this|it) is )?not what\b|^wrong \w+\b|^i (?:asked|said|meant|wanted|never)\b|^you (?:changed|should(?:n'?t| not)? have)\b/i

/** The same signs in the other languages. */
const OTHER_GENERAL: readonly RegExp[] = [
  /\b(?:wir|hier|jede[mnrs]?|alle|projekt|repo|verboten|tabu|keine?n?|statt|anstatt|sondern|lieber)\b|^(?:bitte )?(?:nimm|nutze?|verwende?|benutze?|schreib)\b/i,
  /\b(?:usamos|utilizamos|cada|todos|todas|proyecto|repo|prohibid[oa]s?|mejor|en vez de|en lugar de|tienes que|debes|hay que)\b|aquí|^(?:usa|utiliza)\b/i,
  /\b(?:on utilise|nous|chaque|tous|toutes|projet|interdit|interdite|plutôt|au lieu d|tu dois|il faut|ici)|^(?:utilise|emploie)/i,
  /用|我们|项目|这里|必须|一定|禁止|不要|应该|每/,
]

/** Signs of a correction that outlives the moment it was said in. */
const GENERAL: readonly RegExp[] = [
  STANDING,
  // It is about more than the thing at hand.
  /\b(?:every\w*|all|any|each|in general|here|we (?!work\b)|our|the team|convention|style|policy|prefer\w*|this (?:repo\w*|project|code ?base))\b/i,
  // It chooses something by its name.
  /^use (?!(?:the )?(?:other|same|second|first|old|new)\b|(?:it|that|this|these|those|an?)\b)\S/i,
  // It rules out a way of working.
  /^(?:don'?t|do not|stop|you should(?: not|n'?t)) (?!touch|chang|renam|mov|bump|remov|delet)\S+ (?!(?:it|that|this|the|these|those)\b)\S|\b(?:don'?t|do not) \w+ .*, use\b/i,
  // It names what is right and what is not.
  /^[^\s,]+(?: [^\s,]+)?,? (?:and |und |et |y )?(?:not|instead of|rather than|nicht|statt|no|en vez de|pas|au lieu de|plutôt que) \S+(?: \S+)?$/i,
  ...OTHER_GENERAL,
  /\b(?:without asking|forbidden|not allowed|unless i)\b/i,
  // It is a fact, or gives a reason.
  /^(?!i\b|you\b)(?:\S+ ){1,5}?(?:is|are|returns?|comes?|uses?|means?|takes?|don'?t|doesn'?t|can'?t|only|may)\b/i,
  /, \S+ (?:is|are|has|have|does|do|loses?)\b(?! to\b)/i,
]

/** A rule, and not a remark about the work at hand ("that's wrong, the tilde has to stay"). */
export const isGeneral = (sentence: string): boolean => {
  const said = sentence.replace(OPENING_REMARK, "")
  return !ABOUT_WORK.test(said) && GENERAL.some((pattern) => pattern.test(said))
}
