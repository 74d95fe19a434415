/** Each sentence that the rules learn from has one of these words; most messages that set work have none. */
const CUES = [
  "no+(?:pe)?|nah|not|never|always|(?:do|did|does|is|was|wo|have|should|must)n['’]?t|should",
  "wrong|incorrect|backwards|instead|rather|prefers?|preferences?|actually|stop|quit|avoid|tried|keep|kept",
  "said|told|asked|meant|wanted|want|like|love|hate|dislike|stand|let['’]?s|we['’]ll|will|us|go|going",
  "decision|decided|agreed|settled|opted|chose|picked|selected|dropping|migrating|moving|standardi[sz]ing|staying|sticking",
  "conventions?|styles?|rules?|polic(?:y|ys|ies)|standards?|guidelines?|structure|approach|layout|way|how|work(?:s|ed)",
  "patterns?|anti-?patterns?|bad|terrible|horrible|awful|dangerous|here|everywhere|this|now|future|general|default",
  "every|each|whenever|mind|aware|remember|note|fyi|record|heads|know|important|reminder|reason|turns",
  "generated|auto-?generated|code-?generated|vendored|read-?only|deprecated|frozen|legacy",
]
const CUE = new RegExp(`\\b(?:${CUES.join("|")})\\b`, "i")

/** A cheap test that misses no message which teaches something (docs/adr/0003). */
export const mayTeach = (text: string): boolean => CUE.test(text)
