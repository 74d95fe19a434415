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
type Signal = { readonly type: LearningType; readonly pattern: RegExp }

/** Base forms of the verbs in instructions about code. */
const DO =
  "use|run|write|add|put|commit|ask|check|keep|make|format|name|return|import|test|create|push|squash|rebase|log|throw|handle|validate|wrap|mock|touch|edit|change|modify|delete|remove|start|read|show|explain|include|leave|call|do|go|pin|update|bump|generate|quote|escape|store|hardcode|hard-code|assume|guess|invent|skip|disable|ignore|swallow|catch|print|open|force|amend|merge|deploy|install|rename|document|cover|type|annotate|sort|group|indent|close|await|export|declare|define|reply|answer|respond|let|give|tell|rewrite|reformat|refactor|introduce|rely|trust|copy|reuse|prefer|avoid|move|revert|try|stick|set|pass|render|fetch|load|query|inline|extract|split|sign|round|convert|cast|lock|share|post|send|inject|index|nest|cache"
/** The verbs of these that change how something is done; "No, run it again" is an order and teaches nothing. */
const CHANGE =
  "use|do|make|try|keep|put|call|name|return|throw|store|move|write|add|remove|rename|set|pass|render|leave|wrap|import|extract|validate|handle|log|cache|sort|convert|generate|create|avoid|inline|split|mock|prefer|type|round|quote|escape|inject|nest|delete|replace"
const CHOICE =
  "(?!option\\b|the (?:first|second|third|last|other|latter|former)\\b|it\\b|that\\b|this\\b|your\\b|to know|not to say|\\d)"
const NOT = "(?:don'?t|do not|never)"
const BE = "(?:'s| is| was|s)"
/** A place inside a sentence where a clause may begin. */
const CLAUSE = "(?:^|[,;:—–(-] ?|\\bbut |\\band |\\bso |\\bbecause )"
const HERE =
  "(?:in this (?:repo|repository|project|code ?base|team|monorepo|package|app|service)|(?:around )?here|everywhere)"

const make = (type: LearningType, ...sources: readonly string[]): Signal[] =>
  sources.map((source) => ({ type, pattern: new RegExp(source, "u") }))

const CORRECTIONS = make(
  "correction",
  // no[,.]? (do|use|try|make|don't|instead|actually)
  `^(?:no+(?:pe)?|nah)[,.!;:…–— -]*[,.!;:…–—-][,.!;:…–— -]*(?:please |just |you (?:should|need to|have to|must) |let'?s |we (?:want|need|use|have|only|always|never)\\b|only |${NOT} |instead\\b|actually\\b|rather |(?:${CHANGE})\\b|it should|it(?:'s| is) (?:called|not)|(?:it|that|this|these|those|they|the \\S+) (?:should|must|has to|have to|needs? to|goes?|belongs?|lives?)\\b|i (?:meant|want(?:ed)?|said|asked)\\b|not (?!yet|now|really|at all|sure|today|that|necessarily|needed|possible)\\S+ \\S+)`,
  `^no+(?:pe)? (?:instead|actually|${NOT}|(?:use|try|make|do|keep) (?:it|that|this|the|an?|my|our|your|not|both|only|just|two|one)\\b|use \\S+$|use .*(?:instead|not)\\b)`,
  // that's (wrong|incorrect|not right)
  `^(?:(?:no|nope|sorry|wrong),? )*(?:that|this|it)${BE} (?:just |still |totally |completely |simply |all )?(?:wrong|incorrect|not (?:right|correct|true)|backwards)(?:$|[.!,;:–— -]*[.!,;:–—-])`,
  // not what i (asked|meant|wanted)
  `\\b(?:not|isn'?t|wasn'?t) (?:at all |really )?what (?:i|we) (?:asked|meant|want|wanted|said|had in mind)\\b(?! to\\b)`,
  // instead[,.]? (use|do|try)
  `${CLAUSE}instead[,.]? (?:please )?(?:${CHANGE})\\b`,
  // prefers? … (over|instead|rather)
  `${CLAUSE}(?:(?:i|we|i'd|we'd|(?:i|we) (?:really|strongly|generally|usually|always|would|much)|please|the team) )?prefers? ${CHOICE}\\S.* (?:over|instead of|rather than)\\b`,
  // actually[,.]? (i want|use|it should)
  `${CLAUSE}actually,? (?:no,? )?(?:i want (?!to (?:know|see|understand|ask|check|read|learn|look|test|try)\\b)|i(?:'d| would) (?:prefer|rather)|we (?:want|need|use)|let'?s (?:not )?(?:${CHANGE}|go with|stick)\\b|it (?:should|must|has to|needs to)|${NOT} |(?:please )?(?:${CHANGE})\\b)`,
  `^we actually (?:use|want|need|prefer)\\b`,
  `^(?:please )?(?:use|return|call|write|import|keep|put|make|name|try|store) \\S.*?(?:,? instead(?: of \\S.*)?$|,? instead of | rather than )`,
  `^(?:please )?(?:use|it'?s|it is|it should be|they should be|call it|name it|make it|put it in|keep it in|(?:it|that) (?:is|should be) (?:called|spelled|named)) .*[ ,]not \\S`,
  `\\b(?:should|must) (?:be|use|go|return|live|come|have|happen|run|stay) .*(?:, not | and not | instead of | rather than |,? never )`,
  `^(?:please )?(?:rather than|instead of) .+ (?:${DO}) `,
  `^(?:please )?(?:stop|quit) (?:adding|creating|using|writing|changing|putting|making|touching|editing|removing|rewriting|mocking|asking|wrapping|generating|guessing|inventing|committing|reformatting|importing|running|apologi[sz]ing|summari[sz]ing|repeating)\\b`,
  `\\bi (?:said\\b|told you|asked (?:you|for)|meant (?!to\\b)|wanted (?!to\\b)) ?.*(?:\\bnot\\b|\\bno new\\b|n't\\b|\\bnever\\b|\\binstead\\b|\\bonly\\b)`,
  `\\bi (?:didn'?t|did not|never|haven'?t) (?:ask|asked|say|said|want|wanted)\\b(?! (?:to |about)).* (?:for|to|that|you)\\b`,
  `\\bi(?:'ve)? already (?:said|told you)\\b (?:that|to|not)\\b`,
  `\\byou (?:should(?:n'?t| not)?|must not|mustn'?t) (?:not )?have \\w+`,
  `\\byou (?:keep|kept|always keep) (?!working|going|running|trying|looking|watching|waiting|doing)\\w+ing\\b`,
  `^${NOT} (?:${DO})\\b.*[,;:.—–-] ?(?:please )?(?:just |rather |but )?(?:use|do|keep|put|call|return|go|pass|write|make|leave|there(?:'s| is)|we have|we already)\\b`,
  `^${NOT} (?:${DO})\\b.* instead$`,
  `^${NOT} (?:${DO})\\b.*\\b(?:any ?more|again|ever)$`,
  `^not (?!sure|yet|now|really|bad|only|that |too|quite|at all|today|all|so |very|much|many|everything|necessarily|an? |\\w+(?:ing|ed)\\b|found|possible|good|great|helpful|important|urgent|true|ready|done|able|necessary|the (?:best|prettiest|same|first|worst|end|only)|my |because|just|like )\\S+(?: \\S+){0,6}, ?(?!but it|though|i |it'?s|so |thanks|please |see |can |why )\\S+`,
  `(?:^|: )not the .+, (?:but )?the `,
  `^wrong (?:file|branch|folder|directory|function|approach|one|version|database|table|place|test|component|way|endpoint|name|order|module|package|env|environment|type|unit|format)\\b[,:;.—–-]+ ?\\S+ \\S+`,
  `\\b(?:that|this|it)(?:'s| is) not how (?:we|i|it|this|that|the)\\b`,
  `^(?:but )?we (?:don'?t|do not|never) (?:use|do|want|write|mock|have|put|need|call|import|log|throw|allow|commit|catch|store|ship) .*\\b${HERE}`,
)

const DECISIONS = make(
  "decision",
  `^(?:the |our |final )*decision(?: is)?: ?\\S`,
  `${CLAUSE}let'?s (?:go|stick|stay) with (?!it\\b|that\\b|this\\b|the (?:first|second|third)|option \\w+$|\\d)\\S`,
  `${CLAUSE}let'?s (?:use|store|not use|not add|drop) (?!this opportunity|it\\b|that\\b|the debugger|the time)\\S`,
  `${CLAUSE}let'?s (?:call|name) (?!it a day|it quits)\\S+ \\S`,
  `${CLAUSE}let'?s put \\S.* (?:in|into|behind|under|on) `,
  `${CLAUSE}let'?s keep (?!going|it up|it simple|working|trying|this short|in touch|at it)\\S+ \\S+`,
  `\\b(?:we|i|the team)(?:'ve| have)? (?:just |now |already |finally )?(?:decided|agreed|settled|opted)\\b (?:to|on|that|for|against|not)\\b`,
  `\\bwe (?:chose|picked|selected) \\S+.* (?:over|because|since|as|for)\\b`,
  `\\bwe(?:'re| are) (?:now )?(?:going with|sticking with|standardi[sz]ing on|moving (?:to|away from|off)|migrating (?:to|off|away)|dropping|staying (?:on|with))\\b`,
  `\\bwe(?:'ll| will) (?:use|go with|stick with|keep (?!you|going|an eye)\\S+|store|stay on|stay with|standardi[sz]e on|drop|support only|only support)\\b`,
  `^(?:yes,? |yeah,? )?go with (?!your\\b|what|option|the (?:first|second|third|other)|it\\b|that\\b|this\\b|\\d|[a-d]\\b)\\S`,
)

const PREFERENCES = make(
  "preference",
  `${CLAUSE}(?:please )?(?:always|never) (?:${DO})\\b`,
  `\\bplease make sure (?:to |you |that you )always\\b`,
  `\\b(?:you|we) (?:should |must )?(?:always|never) (?:${DO})\\b`,
  `\\b(?:should|must) always (?:${DO}|be)\\b.*\\b${HERE}`,
  `^(?:from now on|going forward|as a rule|by convention|every time you|whenever you|each time you)\\b.*\\b(?:${DO}|every|each|all|no|needs?|must|should|gets?|has|have|is|are)\\b`,
  `^(?:for future reference|in (?:the )?future|in general|by default)[,:]? (?:please |always |never |${NOT} |we |you (?:should|must) |(?:${DO})\\b)`,
  `^when you\\b.*,? (?:please )?(?:always|never)\\b`,
  `^(?:please )?(?:${DO}|${NOT} \\S+) .*\\b(?:from now on|going forward|in (?:the )?future)$`,
  `^(?:in|for) \\S+(?: \\S+){0,2},? (?:please )?(?:always|never) (?:${DO})\\b`,
  `^${HERE},? (?:we|you|please|always|never|use|${NOT}|all|every|the|no)\\b`,
  `^we (?:use|write|keep|name|put|prefer|do|squash|always|never|pin|test|format|log)\\b.*\\b${HERE}$`,
  `\\bi(?:'d| would)? (?:really |strongly |generally |usually |always |much )?prefer ${CHOICE}\\S`,
  `^i(?:'d| would) rather (?:have|see|keep|use|not|you)\\b`,
  `^i (?:hate|dislike|can'?t stand|don'?t like|do not like) (?!this|that|it\\b|the |how |where |your |these |those |to |what |when )\\S+ \\S`,
  `^i (?:like|love|want) it when \\S+ \\S`,
  `^i (?:don'?t|do not|never) want (?:any|new|more|you to)\\b \\S`,
  `^i(?:'d like| want| would like) you to (?:always|never)\\b`,
  `^(?:please )?keep (?:your |the |all |my )?(?:answers?|repl(?:y|ies)|responses?|commits?|commit messages?|messages?|comments?|diffs?|functions?|files?|prs?|pull requests?|changes|explanations?|names?|tests?|lines?|summaries) (?:\\S+ ){0,2}?(?:short|small|brief|concise|under|below|minimal|focused|simple|tiny|pure|flat|consistent|atomic|neutral|in english|lower ?case|to (?:a|one)|self-contained|independent)\\b`,
  `^(?:our|my|the team'?s|the) (?:convention|style|preference|rule|policy|standard|guideline)s? (?:(?:here|for \\S+|in this \\S+) )?(?:is|are)\\b \\S+ \\S+`,
  `^my preference (?:is|for)\\b`,
)

const ANTI_PATTERNS = make(
  "anti_pattern",
  `${CLAUSE}(?:please )?avoid (?!this\\b|that\\b|it\\b|the error|the problem)\\S+ \\S+`,
  `\\bwe(?:'ve)? (?:already |once )?tried (?!it\\b|that\\b|this\\b|again|to\\b|your\\b)(?!.*\\bwith (?:exit|error|the following|this|code|an? )).* (?:and|but|which|,) ?(?:it |that |they |we |this |\\S+ \\S+ )?(?:broke|failed|didn'?t work|did not work|was|were|caused|led|made|had to|got|deadlocked|leaked|lost|ended|crashed|doubled)\\b`,
  `\\b(?:is|are|was|were) (?:just |really |always |usually )?an? (?:bad|terrible|horrible|awful|dangerous) (?:idea|practice|pattern|choice)\\b`,
  `\\b(?:is|are|was|were) (?:just |really )?(?:an? )?anti-?patterns?\\b`,
  `\\b(?:that|this|the|the \\S+) (?:approach|way|trick|hack|workaround|solution|idea|pattern) (?:didn'?t|doesn'?t|does not|did not|won'?t|never|never really) work(?:ed|s)? .*\\b(?:because|since|as)\\b`,
  `\\b(?:bit|burned|burnt|hurt) us\\b`,
)

const PATTERNS = make(
  "pattern",
  `^(?:please )?(?:follow|copy|reuse|mirror|stick to|match|use|keep to) (?:the |our )(?:same |existing |usual )?(?:patterns?|structure|style|approach|conventions?|layout) (?:as |in |of |from |we |used )`,
  `\\b(?:worked|works) (?:really |very |so )?(?:well|great|fine|nicely|perfectly)\\b.*\\b(?:keep (?:doing|using|it|writing)|do (?:it|that) (?:like|the same)|again|from now)\\b`,
  `\\b(?:do|keep doing) (?:it|that|this) (?:like that|like this|that way|this way|the same way|exactly like that) .*\\b(?:every|each|all|from now|again|future|new|whenever)\\b`,
  `^the way (?:we|i) (?:do|handle|name|write|test|structure|deploy|release|log|build|organi[sz]e|version|model|model|store|format)\\b.* is\\b`,
  `^(?:this|that|here)(?:'s| is) (?:exactly |also )?(?:how|the way) we \\S+ \\S+`,
)

/** Excludes what was done a moment ago, and states that hold at the moment. */
const PASSING =
  "(?!.*\\b(?:is|are) (?:still )?(?:red|green|down|broken|up|failing|flaky|done|ready|back|merged|away|out|missing|wrong|the same|on vacation)\\b)(?!.*\\bi(?:'ll|'m| will| am)\\b)(?!.*\\b(?:i|i've|we)(?: have| just| already| also)* (?:pushed|merged|committed|deployed|updated|fixed|added|changed|restarted|ran|tried|opened|created|renamed|installed|rebased)\\b)"

const INSIGHTS = make(
  "insight",
  `^(?:please )?(?:keep in mind|bear in mind|be aware|remember|note),? that ${PASSING}\\S+ \\S+ \\S+`,
  `^(?:please )?(?:keep in mind|note|fyi|for the record|heads[- ]up|good to know|important|reminder)\\b(?: ?[:,–—-])? ?${PASSING}(?:the|that|our|we|all|this|every|any|it|there|they|only|\`¤+\`|make|ci|these|most|some|no|\\S+s) .*\\b(?:is|are|has|have|needs?|runs?|uses?|must|can'?t|cannot|can|only|don'?t|doesn'?t|expects?|takes?|returns?|lives?|comes?|requires?|still|never|always|won'?t|will|shares?|fails?)\\b`,
  `^the reason (?:(?:why |that )?(?:we|our|the)|is that)\\b.+ (?:is|was|because)\\b \\S`,
  `^(?:it )?turns out,? (?:that )?${PASSING}(?!it was|i was|i had|it had|i forgot|it's (?:a|just)|nothing|we were|to be)(?:\\S+ ){1,6}(?:is|are|has|have|needs?|retries|retry|doesn'?t|don'?t|can'?t|cannot|only|returns?|requires?|sends?|supports?|expects?|uses?|never|always|rejects?|ignores?|limits?|silently)\\b`,
  `\\b(?:is|are) (?:auto-?generated|generated|vendored|read-?only|deprecated|frozen|legacy|code-?generated)\\b.*\\b(?:so |never|${NOT}|only|by)\\b`,
)

/** Checked in this order: a sentence that both corrects and states a rule is a correction. */
export const SIGNALS: readonly Signal[] = [
  ...CORRECTIONS,
  ...DECISIONS,
  ...ANTI_PATTERNS,
  ...PATTERNS,
  ...INSIGHTS,
  ...PREFERENCES,
]

/** Patterns of sentences that teach nothing, even if a signal matches. */
export const EXCLUSIONS: readonly RegExp[] = [
  // Questions.
  /\?["')\]]*$/,
  /^(?:can|could|would|should|do|does|did|is|are|was|were|have|has|had|what|which|who|why|how|where|when will|shall|may|might) (?:i|we|you|it|that|this|there|the|they|he|she|someone|people|users)\b(?! should)/,
  /^(?:what|which|who|how|where|why)(?:'s| is| are| does| do| did| not)\b/,
  // Conditions and guesses.
  /^(?:(?:and|but|also|so),? )?(?:if|unless|whether|suppose|assuming|in case)\b/,
  /\b(?:maybe|perhaps|i guess|i suppose|not sure|i wonder|up to you|whatever|if you (?:want|like|think|prefer)|i don'?t (?:know|care|mind)|either (?:way|is fine)|should (?:i|we)\b(?! not)|i think something|might want|don'?t (?:worry|bother|mind|forget)|let me know|tell me)\b/,
  // Temporary instructions.
  /\b(?:for now|until|till|temporar\w+|this time|just this once|for today|today|tomorrow|tonight|this (?:once|week|morning|sprint|afternoon)|for the moment|right now|at the moment|next (?:week|sprint)|later today|this one time|while i(?:'m| am))\b/,
  // Quoted statements of others.
  /^(?!i\b|we\b|you\b)(?:\S+ ){1,3}?(?:says?|said|told|wrote|writes|recommends?|suggests?|claims?)\b/,
  /\baccording to\b/,
  /\b(?:he|she|they|someone|somebody|colleague|boss|manager|(?:the|my|our|a|your) (?:reviewers?|customers?|clients?|users?|linter|compiler|docs?|documentation|errors?|readme|ticket|issue|spec|logs?|server|tool|bot|model|warnings?|page|article|author|book|manual|colleague|boss|manager|lead|message|comment|guide|tutorial|website|internet|ai|plugin|rule)|it) (?:said|says?|told|wrote|writes|asked|suggests?|suggested|recommends?|recommended|thinks?|claims?|complains?|reads?)\b/,
  // A wish of a program's users is a requirement to be built.
  /\b(?:users?|customers?|people|visitors?|admins?|readers?|as an? \w+(?: \w+)?) (?:can |may |could |should |might |would |actually |who |i )?(?:prefers?|want|wants|decides?|likes?|chooses?|actually)\b/,
  // A program's behaviour at a given time.
  /^(?:the|an?|it|this|that|they|these|those|every|each|all|our|my) (?!rule|convention|style|way|reason|team)[^,]*\b(?:should|must|shall|has to|have to|needs? to|can|will|may)\b.*\b(?:always|never)\b/,
  /^(?:when|once|after|before|on|as soon as|in the|while|during) (?!you\b|we\b|(?:this|future)\b|\w+ing\b).*\b(?:always|never)\b/,
  // Work to be done whose description contains such words.
  /^(?:please )?(?:implement|build|create|refactor|migrate|translate|convert|fix|document|review|proofread|explain|list|compare|compute|count|find|grep|search|summari[sz]e|extract|generate|draft|design|describe|investigate|analy[sz]e|write (?:a|an|tests?|some|the|me|code)|add (?:a|an|the|some|support)|change the (?:text|label|title|wording)|rename|set the|handle the case|make sure the|remember to|show me)\b(?!.*\b(?:from now on|going forward)\b)/,
  /^(?:no+[,. ]+)(?:thanks|thank you|problem|worries|need|rush|idea|hurry)\b(?!.*[,;] ?(?:no|but|use))/,
  /^(?:no+[,. ]+)(?:go ahead|do (?:whatever|as you|what you|it (?:again|yourself))|keep going|try (?:it )?(?:again|once more)|continue|(?:do|leave|keep|use|try) (?:it|that|this)[.!]*$|that's (?:all|fine|ok|it))/,
  // An order to repair something, without what is right.
  /^(?:no,? )?(?:that|this|it)(?:'s| is| was) (?:\w+ )?(?:wrong|incorrect|not (?:right|correct|true))[.!,;:–— -]+(?:please )?(?:fix|check|look|revert|undo|redo|try|retry|run|correct|see|can|could|why|what|how|again|sorry|thanks)\b/,
  // Examples of such sentences.
  /\b(?:such as|for example|e\.g\.|called|labelled|labeled|says|reads|text|string|phrase|regex|pattern) ?:? ?["'`“«]¤/,
  /^the (?:label|button|dialog|text|title|message|placeholder|tooltip|option|page|user|client|endpoint|header|footer|form|field|function|method|script) (?:must|should|can)\b(?!.* (?:not|instead of|rather than|never) )/,
]

/** Words of a rule that outlives the moment it was said in. */
export const STANDING = /\b(?:always|never|from now on|going forward|every time|whenever|before you)\b/i

/** Rules about the agent's answers, which fit any request. */
export const ABOUT_ANSWERS =
  /^(?:please )?(?:keep|make) (?:your|the|all) (?:answers?|repl(?:y|ies)|responses?|explanations?|summar(?:y|ies))\b|\b(?:explain|answer|reply|write|talk|respond)\b.*\b(?:to me|simple words|in english|briefly)\b/i

/** Rules about commits, white space and the end of work, which fit any request that changes something. */
export const ABOUT_CHANGES =
  /\b(?:commit|push|merg|rebas|amend|branch|indent)\w*\b|\b(?:tabs|semicolons|(?:single|double) quotes|pull requests?)\b|\bbefore you (?:say|tell|finish|call|hand|stop|are done)/i

/** Limits a rule to a kind of work. */
export const SCOPED = /\b(?:in|for) (?:\w+ )*(?:tests?|specs?|files?|components?|modules?|scripts?|prod\w*)\b|\bwhen\b/i

const OPENING_REMARK =
  /^(?:\W*(?:no+(?:pe)?|nah|wait|sorry|yeah|but|please|actually|instead|(?:that|this|it)(?:'s| is) (?:wrong|incorrect|not (?:right|correct)))\b[\s,.:;!–—-]*)+/i

/** Speaks of what was done or asked for. */
const ABOUT_WORK =
  /^(?:(?:that|this|it) is )?not what\b|^wrong \w+\b|^i (?:asked|said|meant|wanted|never)\b|^you (?:changed|should(?:n'?t| not)? have)\b/i

/** Signs of a correction that outlives the moment it was said in. */
const GENERAL: readonly RegExp[] = [
  STANDING,
  // It is about more than the thing at hand.
  /\b(?:every\w*|all|any|each|in general|here|we (?!work\b)|our|the team|convention|style|policy|prefer\w*|this (?:repo\w*|project|code ?base))\b/i,
  // It chooses something by its name.
  /^use (?!(?:the )?(?:other|same|second|first|old|new)\b|(?:it|that|this|these|those|an?)\b)\S/i,
  // It rules out a way of working.
  /^(?:don'?t|do not|stop|you should(?: not|n'?t)) (?!touch|chang|renam|mov|bump|remov|delet)\S+ (?!(?:it|that|this|the|these|those)\b)\S|\b(?:don'?t|do not) \w+ .*, use\b/i,
  // It is a fact, or gives a reason.
  /^(?!i\b|you\b)(?:\S+ ){1,5}?(?:is|are|returns?|comes?|uses?|means?|takes?|don'?t|doesn'?t|can'?t|only|may)\b/i,
  /, \S+ (?:is|are|has|have|does|do|loses?)\b(?! to\b)/i,
]

/** A rule, and not a remark about the work at hand ("that's wrong, the tilde has to stay"). */
export const isGeneral = (sentence: string): boolean => {
  const said = sentence.replace(OPENING_REMARK, "")
  return !ABOUT_WORK.test(said) && GENERAL.some((pattern) => pattern.test(said))
}
