import { excludes, make, type Rules } from "./signals.ts"

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
/** The subjects of rules about the way of working, unlike those of a program's requirements. */
const CODE =
  "(?:(?:branch|function|method|class|variable|file|type|test|module|component|package|constant|column|table|parameter)[- ]names?|(?:commit|error|log|exception) messages?|commits?|branch(?:es)?|pull requests?|prs?|(?:unit |integration |e2e |end-to-end )?tests?|(?:test|source|spec|config|markdown|fixture|generated|helper|utility) files?|(?:public |pure |helper |async |arrow |exported )?functions?|methods?|class(?:es)?|(?:global |env |environment )?variables?|globals?|(?:absolute |relative |wildcard |unused )?imports?|(?:default |named )?exports?|modules?|packages|(?:npm )?dependenc(?:y|ies)|constants?|enums?|interfaces?|hooks?|(?:database |db )?migrations?|docstrings?|(?:code )?comments?|types?|(?:sql |raw )?quer(?:y|ies)|sql|repositor(?:y|ies)|controllers?|services|handlers?|components?|(?:changelog|release) (?:entr(?:y|ies)|notes?)|changelog|readmes?|code|identifiers?|fixtures?|mocks?|mocking|linter|formatter|logger|console\\.log|logging|log statements?|print statements?|emojis?|semicolons?|tabs|trailing commas|(?:inline|css) styles?|stylesheets?|magic (?:numbers?|strings?)|abbreviations?|todos?|todo comments?|typescript|javascript|python|any|ternar(?:y|ies)|decorators?|singletons?|side effects?|force[- ]push(?:es)?|merge commits?|feature branch(?:es)?|co-?author\\S*|secrets|credentials|scripts?|source code|snapshots?|stack traces?|error codes|generics|callbacks?|promises?|loops?|indentation|line endings|wildcards?|aliases|barrel files?|boilerplate|vendored code|dead code)"
/** Parts of a program that its users see. */
const SEEN =
  "(?:colou?rs?|badges?|buttons?|labels?|icons?|texts?|titles?|headers?|headings?|footers?|sidebars?|menus?|dialogs?|modals?|pages?|prices?|logos?|images?|fonts?|paddings?|margins?|rows?|columns?|lists?|forms?|fields?|charts?|maps?|tooltips?|popups?|banners?|screens?|panels?|cards?|links?|checkbox(?:es)?|dropdowns?|inputs?|notifications?|messages?|invoices?|orders?|payments?|customers?|users?|visitors?|guests?|admins?|accounts?|profiles?|products?|carts?|e-?mails?|passwords?|uploads?|downloads?|exports?|reports?|search|results?|endpoints?|servers?|apis?|app|application|site|website|avatars?|cursor|scrollbar|toolbar|navbar|tab|spinner|placeholder|toast|calendar|timer|game|player|score)"
const MODAL = "(?:must|should|has to|have to|needs? to|needs?|can only|cannot|can't|shouldn't|mustn't)"

const CORRECTIONS = make(
  "correction",
  // no, pnpm not npm
  `^no+(?:pe)?[ ,.!:;–—-]+(?!.*\\b(?:is|are|was|were|do|does|did|will|can|could|would|has|have|had|still|it|i|there|maybe|or|if|why|left|right|top|bottom|red|green|blue|gr[ae]y|january|february|march|april|june|july|august|september|october|november|december|bigger|smaller|first|second|yet)\\b)(?!not\\b)[^\\s,]{2,}(?: [^\\s,]+)?(?: [^\\s,]+)?,? (?:and )?(?:not|never|instead of|rather than) [^\\s,]{2,}(?: [^\\s,]+)?(?: [^\\s,]+)?(?:,? please)?$`,
  `^(?:but |and |in )?(?:this|our|the) (?:project|repo|repository|code ?base|monorepo|team|package|library)(?: here)? (?:always |only )?(?:uses?|runs? on|targets|requires|follows|sticks to|is (?:written in|on|using|built with)|writes|tests with|works with|is) .*(?:,? not (?!one|two|three|four|\\d)|\\binstead of |\\brather than |, never |\\beverywhere$)`,
  `^(?:but )?(?:here )?(?:we|we're|we are)(?: only| always)? (?:use|run|write|test|build|deploy|format|lint|stick|target|support|on|using|import|name|keep) .*(?:,? (?:and )?not |, never |\\binstead of |\\brather than )(?!yet|now|to |for now|the same|really|in the mood)\\S`,
  `^(?:no[,.]? )?not (?:like (?:that|this)|(?:this|that) way)\\b[ ,;:.!–—-]+(?!please\\b|sorry|thanks|try|again|but)\\S+ \\S+ \\S`,
  `^(?:and |but )?you (?:must|have to|need to|should|are (?:supposed|meant|expected) to) (?:only |always )?use (?!this |that |it\\b|the (?:new|other|same|first|second)\\b|your )\\S`,
  `^you should(?: have|'ve) (?:used|put|called|asked|run|kept|written|taken|imported) \\S+ \\S`,
  `^i(?:'ve)? (?:already )?told you[,:;–—-]+ ?\\S+ \\S+ \\S`,
  `^stop[,.!: –—-]+(?:please )?(?:we|never|always|you (?:must|should)|(?:${NOT}|use|ask|run)\\b)`,
  // no[,.]? (do|use|try|make|don't|instead|actually)
  `^(?:no+(?:pe)?|nah)[,.!;:…–— -]*[,.!;:…–—-][,.!;:…–— -]*(?:please |just |always |never |you (?:should|need to|have to|must) |let'?s |we (?:want|need|use|have|only|always|never)\\b|only |${NOT} |instead\\b|actually\\b|rather |(?:${CHANGE})\\b|it should|it(?:'s| is) (?:called|not)|(?:it|that|this|these|those|they|the \\S+) (?:should|must|has to|have to|needs? to|goes?|belongs?|lives?)\\b|i (?:meant|want(?:ed)?|said|asked)\\b|not (?!yet|now|really|at all|sure|today|that|necessarily|needed|possible)\\S+ \\S+)`,
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
  `^not (?!what i (?:expected|thought|hoped)|sure|yet|now|really|bad|only|that |too|quite|at all|today|all|so |very|much|many|everything|necessarily|an? |\\w+(?:ing|ed)\\b|found|possible|good|great|helpful|important|urgent|true|ready|done|able|necessary|the (?:best|prettiest|same|first|worst|end|only)|my |because|just|like )\\S+(?: \\S+){0,6}, ?(?!but it|though|i |it'?s|so |thanks|please |see |can |why )\\S+`,
  `(?:^|: )not the .+, (?:but )?the `,
  `^wrong (?:file|branch|folder|directory|function|approach|one|version|database|table|place|test|component|way|endpoint|name|order|module|package|env|environment|type|unit|format)\\b[,:;.—–-]+ ?\\S+ \\S+`,
  `\\b(?:that|this|it)(?:'s| is) not how (?:we|i|it|this|that|the)\\b`,
  `^(?:but )?we (?:don'?t|do not|never) (?:use|do|want|write|mock|have|put|need|call|import|log|throw|allow|commit|catch|store|ship) .*\\b${HERE}`,
)

const DECISIONS = make(
  "decision",
  `^(?:the |our |final )*decision(?: is)?: ?\\S`,
  `${CLAUSE}let'?s (?:go|stick|stay) with (?!it\\b|that\\b|this\\b|your\\b|the (?:first|second|third|last|other|latter|former|left|right|red|blue|green|one)|(?:option|plan|variant|version|number|choice|proposal) \\w+$|\\S$|\\d)\\S`,
  `${CLAUSE}let'?s (?:use|store|not use|not add|drop) (?!this opportunity|it\\b|that\\b|the debugger|the time)\\S`,
  `${CLAUSE}let'?s (?:call|name) (?!it a day|it quits)\\S+ \\S`,
  `${CLAUSE}let'?s put \\S.* (?:in|into|behind|under|on) `,
  `${CLAUSE}let'?s keep (?!going|it up|it simple|working|trying|this short|in touch|at it)\\S+ \\S+`,
  `\\b(?:we|i|the team)(?:'ve| have)? (?:just |now |already |finally )?(?:decided|agreed|settled|opted)\\b (?:to|on|that|for|against|not)\\b(?! (?:to )?(?:go to|go out|meet|eat|visit|travel|fly|drive|watch|buy|celebrate|postpone|move (?:the|it)|hire|pay|pause|wait|talk|see|order|skip|have (?:a|the|lunch|dinner)|pizza|cancel|leave|invite))`,
  `\\bwe (?:chose|picked|selected) \\S+.* (?:over|because|since|as|for)\\b`,
  `\\bwe(?:'re| are) (?:now )?(?:going with|sticking with|standardi[sz]ing on|moving (?:to|away from|off)|migrating (?:to|off|away)|dropping|staying (?:on|with))\\b`,
  `\\bwe(?:'ll| will) (?!\\S+ (?:with )?(?:my|your|this|that|it|the (?:other|first|second|same|old))\\b)(?:use|go with|stick with|keep (?!you|going|an eye)\\S+|store|stay on|stay with|standardi[sz]e on|drop|support only|only support)\\b`,
  `^(?:yes,? |yeah,? )?go with (?!your\\b|what|option|the (?:first|second|third|other)|it\\b|that\\b|this\\b|\\d|[a-d]\\b)\\S`,
)

const PREFERENCES = make(
  "preference",
  // No emojis in commit messages.
  `^(?:and |also )?no (?!such|more|longer|need|one|further|luck|idea|clue|wonder|worries|problems?|rush|hurry|news|changes?|errors?|warnings?|issues?|test (?:failures?|results?|output))(?!.*\\b(?:is|are|was|were|has|have|had|will|would|can|could|should|must|may|do|does|did|gets?|got|found|works?|worked|helps?|matters?|appears?|shows?|failed?|fails|failing|needed|required|left|yet|anymore|so far|available|from (?:my|me)|since|selected|at all|for (?:this|that|it|the)|this|that|in the (?:log|logs|output|console|diff)|errors?|warnings?|changes?|difference|problems?|issues?)\\b)(?:\\S+ ){0,3}?${CODE}(?: please| ever|(?:,? (?:please|only|in|inside|outside|for|on|without|at|unless|except|as|over|longer than|after|before|between) .*))?$`,
  `^(?:and |also )?no (?:\\S+ ){1,4}?without (?:asking|my|permission|approval|tests?|a (?:test|review))\\b`,
  // Please don't create new markdown files unless I ask for them.
  `\\b${NOT} (?:ever )?(?:${DO})\\b.*\\b(?:unless|without|before) (?:i|me|my|you ask|asking|permission|approval|being asked|a review|explicit\\w*|first|running|checking)\\b`,
  `^(?:please )?(?:don'?t|do not) (?:ever )?(?:use|add|write|create|import|put|mock|hardcode|hard-code|commit|generate|log|print|catch|swallow|export|introduce|inline|abbreviate|nest|reformat|include|mention|leave|squash|rebase|amend|force-push|push|throw|wrap|invent) (?!it\\b|that\\b|this\\b|the\\b|these\\b|those\\b|them\\b|my\\b|your\\b|anything|everything|more\\b|another|so many|too|an?\\b|any (?:of|more)\\b|yet|now)(?!.*\\b(?:yet|now|anything|else|for (?:this|that|it)|this one|so)\\b)(?:\\S+ ){0,4}?${CODE}\\b`,
  `^you (?:must|have to|need to|should|are (?:supposed|expected) to) \\S.* (?:before|whenever|every time|each time|after) (?:you |each |every |any )?(?:commit|push|merg|open|finish|releas|deploy|pull|pr\\b|say|change|add)`,
  `^(?:please )?(?:run|update|format|lint|test|check|ask|build|rebase|squash|verify|write|add) \\S.* (?:before|after) (?:each|every|any|you) (?:commit|push|merg|pull|pr\\b|releas|change|open|finish|install|add|delet|remov)`,
  `^(?:please )?(?:always )?ask (?:me )?(?:first |for (?:permission|approval) )?before (?:you )?(?:\\w+ing|add|install|delet|remov|chang|creat|push|commit|touch|mak|us)`,
  // Branch names must start with the ticket number.
  `^(?!(?:\\S+ )?comments? (?!.*\\b(?:english|german|explain|why|code)\\b))(?:all |every |each |any |new |our )?(?:(?!the |this |that |these |those |an? )\\S+ )?${CODE}(?: (?:in|of|for|under) \\S+)? (?:always |never )?${MODAL} (?:be |to |only |always |never |not |have )?\\S`,
  `^(?:all |every |each |any |new |our )?(?:\\S+ )?${CODE}(?: (?:are|is|go|goes|live|lives|stay|stays))? (?:always |only |never )?(?:(?:written )?in (?:\\S+ )?(?:english|german|french|spanish|lower ?case|upper ?case|camel ?case|pascal ?case|snake[_ ]?case|kebab[- ]?case|present tense|imperative|the imperative)|in \\S+ style|as (?:verbs?|nouns?)|without \\S+)(?: only|,? please|,? always|, never .*)?$`,
  `^(?!.*\\b(?:failing|missing|broken|slow|red|green|wrong|weird|fine|ok|flaky|not)\\b)(?:all |every |each |any |new |our )?(?:(?!the |this |that )\\S+ )?${CODE} (?:are|is|live|lives|go|goes|use|uses|start|starts|begin|follow|follows|stay|stays|come|comes|belong|belongs|have|has|need|needs|get|gets) .*\\b${HERE}$`,
  `^i (?:don'?t|do not|never) (?:want|need|like) (?:to see )?(?:any )?(?!of\\b|this|that|these|those|the\\b)(?:\\S+ ){0,3}?${CODE}\\b`,
  `\\b(?:is|are) (?:strictly |absolutely )?(?:forbidden|prohibited|banned|not allowed|off limits|taboo)\\b`,
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
  `^i (?:don'?t|do not|never) want (?:any (?!of\\b)|new |more |you to )\\S`,
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

const FILLERS =
  /^(?:(?:ok|okay|k|well|so|and|but|oh|hm+|um+|uh|hey|hi|hello|yes|yeah|yep|sure|right|great|good|nice|thanks|thank you|thx|perfect|cool|sorry|wait|please|pls|plz|also|btw|almost|looks good|one (?:more )?thing|that'?s better|@\S+|then)(?:[\s,.!:…–—-]+|$))+/

/** Requirements of a program under work, and the day's talk. */
const NOT_ABOUT_WORKING = excludes(
  // What a program does when its user does something.
  `\\b(?:when|whenever|while|if|once|after|before|until|as soon as|every time|each time|on) (?:\\S+ ){0,4}?(?:press(?:es|ed|ing)?|click(?:s|ed|ing)?|hover(?:s|ed|ing)?|tap(?:s|ped|ping)?|scroll(?:s|ed|ing)?|swip(?:es?|ed|ing)|drag(?:s|ged|ging)?|select(?:s|ed|ing)?|submit(?:s|ted|ting)?|resiz(?:es?|ed|ing)|logs? (?:in|out)|logged (?:in|out)|signs? (?:in|up|out)|reloads?|focus(?:es|ed)?|loses focus|is empty|are empty|expires?|fails)\\b`,
  `^(?:whenever|every time|each time|when|for (?:each|every|all)|(?:in|on|of) (?:each|every|all)) (?!you (?:commit|push|write|add|create|change|touch|edit|open an? (?:pr|pull|issue)|merge|finish|run|rename|delete|remove|make|fix|need|use|are|refactor|install|generate|name|build|deploy|release)\\b|we\\b|i\\b|\\w+ing\\b|(?:new |public |single )?${CODE}\\b)`,
  `^(?:from now on|going forward|in (?:the )?future|by default),? (?:every|each|all|any|the|an?|new|only) (?!(?:\\S+ )?${CODE}\\b)`,
  `^(?:(?:important|note|remember|fyi|reminder|keep in mind|please|also)\\b[ ,:–—-]*(?:that )?)?(?:(?:the|an?|all|every|each|any|our|both|only|new|no) )?(?!${CODE}\\b)(?:\\S+ )?${SEEN} (?:(?:of|in|on|for|with|from) \\S+(?: \\S+)? )?(?:${MODAL}|always|never|gets?)\\b`,
  `^(?:important|note|remember|fyi|reminder|heads[- ]up|keep in mind)\\b(?!.*\\b(?:we|you|commits?|tests?|branch(?:es)?)\\b).*\\b(?:must|should|shall|has to|have to|needs? to|should be|is due|are due)\\b`,
  `^(?:the|every|each|an?|all|any|both|new|existing|archived|deleted|inactive|expired|no new) (?!(?:\\S+ )?${CODE}\\b)(?!(?:team|project|repo\\w*|rule|convention|reason|way|style|decision|only)\\b)(?:\\S+ ){1,5}?(?:must|should|shall|has to|have to|needs? to|needs|gets?)\\b(?!.* (?:not|instead of|rather than) )`,
  `^(?!(?:no+|nope|nah|actually|wrong|not)\\b)(?!.*\\b(?:we|you|commit|branch|test|code|import)\\b)(?:\\S+ ){1,4}?(?:must|should|shall|has to|have to|needs? to) (?:always |never |not |only )?(?:be (?:able|shown|displayed|visible|hidden|clickable|sortable|editable|possible|sent|notified|redirected|logged|charged|asked|allowed|green|red|blue|centered|aligned)|show|appear|display|overlap|close|open|disappear|return|respond|redirect|load|scroll|blink|see|stay (?:visible|open|on)|work (?:on|offline|without)|confirm|log in|pay|receive|be on the)\\b`,
  `\\b(?:always|never) (?:show|display|hide|highlight|open|close|disable|enable|redirect|scroll|animate|focus|overlap)\\b(?! me\\b)`,
  `\\b(?:users|customers|visitors|guests|admins|a user|the user|the customer|a customer)\\b.*\\b(?:must|should|can|may|cannot|always|never|have to|has to)\\b|\\b(?:always|never|must|should|forbidden|not allowed)\\b.*\\b(?:users|customers|visitors|guests|the user|the customer)\\b`,
  `^as an? \\w+(?: \\w+)?,? i\\b`,
  `^(?:please )?(?:use|make|put|show|add|place|move|render) (?:an?|the|each|every|all) (?!.*\\b(?:class|function|helper|hook|test|module|file)\\b)(?:\\S+ )?${SEEN}\\b`,
  `^i(?:'d)? (?:want|need|like|would like) (?:the|an?|all|every|each|our) `,
  // What goes on today.
  `\\b(?:demo|meetings?|stand-?up|retro|lunch|dinner|breakfast|coffee|party|office|vacation|holidays?|weekend|interview|birthday|train|flight|doctor|sick|weather|deadline|presentation|kick-?off|workshop|conference|appointment|client (?:comes|calls)|japan|traffic|cake)\\b`,
  `^(?!.*\\b(?:deploy|releas|merg|push|ship))(?:.*\\b)?(?:mon|tues|wednes|thurs|fri|satur|sun)days?\\b`,
  `\\b(?:at|until|by|before|after|from|around) (?:noon|midnight|\\d{1,2}(?::\\d\\d)?(?: ?[ap]m| o'clock)?(?![.\\w%])|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)(?:$|[,.;!]| and | so | when | today)`,
  `\\bin (?:an?|\\d+|a few|five|ten|two|half an) (?:minutes?|mins?|hours?|days?)\\b`,
  `\\b(?:server|staging|prod|production|ci|build|vpn|network|internet|wifi|database|db|site|machine|laptop|pipeline|runner|proxy)(?: is|'s| was| are) (?:\\w+ )?(?:restarting|rebooting|down|up|back|slow|broken|red|green|busy|offline|migrating|deploying|being|unreachable|running|full)\\b`,
  `\\bfor (?:this|the) (?:demo|change|pr|pull request|commit|branch|release|one|task|file|case|feature|ticket|bug|fix|page|session|call|part|step|moment|time being|hotfix|spike|prototype|experiment|test run|screenshot)\\b`,
  `\\b(?:just|only) (?:this )?once\\b|\\bthis (?:one )?time\\b|\\bwhile (?:i'm|we're|i am|we are|you're)\\b|\\bagain,? please$`,
  `\\b(?:postpone|reschedule|my (?:boss|manager|wife|husband|team ?lead|mother))\\b.*`,
  `^(?:no+[,.]? )?(?:i meant |it's |use |only |in )?the (?:other|first|second|third|last|previous|next|left|right|upper|lower|top|bottom) \\S+$`,
  `\\b(?:offsite|the talk|dentist|trip|hotel|restaurant|gift|summer|winter|sun|mornings|evenings|big room|meeting room)\\b`,
  `\\b(?:use|with|take|want|prefer|pick|to) the \\S+ ones?$`,
  `\\brevert$|\\brevert (?:it|that|this|them|everything|all)\\b`,
)

/** Patterns of sentences that teach nothing, even if a signal matches. */
const EXCLUSIONS: readonly RegExp[] = [
  ...NOT_ABOUT_WORKING,
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

export const ENGLISH: Rules = {
  fillers: FILLERS,
  otherNo: /^(?:nein|nee|non|nej|nao|不对?|不是)[ ,.!:;，。！–—-]+/,
  // In this order: a sentence that both corrects and states a rule is a correction.
  signals: [...CORRECTIONS, ...DECISIONS, ...ANTI_PATTERNS, ...PATTERNS, ...INSIGHTS, ...PREFERENCES],
  exclusions: EXCLUSIONS,
}
