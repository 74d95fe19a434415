/**
 * Every behaviour Baton promises, one sentence each. A test cites an id through `promised`; test/structure/requirements.test.ts
 * fails for an id that no test cites, and a whole ./scripts/test for one whose tests did not run or are not green.
 */
export const REQUIREMENTS = {
  "repo.A1": "The repository has the layout, the boundaries and the pinned versions that the design states.",
  "repo.A2":
    "./scripts/demo and ./scripts/test need only Node 20 and npm, say what they do, and start at once the second time.",
  "repo.A3": "End-to-end tests run the real oldest and newest OpenCode against a scripted model in an isolated home.",
  "repo.A4": "Every promised behaviour is cited by a test, and a whole run fails for one that no green test keeps.",
  "repo.A5": "One check command formats, lints with warnings as errors, type-checks and tests.",
  "repo.A6": "A whole check that is green leaves a stamp, which every run shows and calls old after 14 days.",

  "task.B1":
    "A task ID and role are read only from a Task: line and a heading in user-authored text, in every form of id.",
  "task.B2":
    "A session's task is bound by the user's message, survives a restart, and is found late by bounded paging.",
  "task.B3":
    "A child session inherits task and role and keeps its own brief; a later Task: line re-binds; deletion forgets.",
  "task.B4": "A session without a task sends the same requests to the model as without the bundle.",
  "task.C1":
    "A task that the ledger knows is bound by a line of the user's that names it in any natural spelling, or a sentence that takes it up, and by no other sentence, quotation or code.",
  "task.D1":
    "/task says what this session's task is and what there is to do, begins a task, makes one, sets it to done, and takes it off; a user's own command of that name is left alone.",
  "task.D2":
    "With autoTask the first message of a root session becomes a task that the session is bound to; a question, a short message, a command and a fork do not.",
  "task.D3":
    "task_show and task_log are offered to an agent that may not use bash in a session with a task, and to no other.",

  "words.A1":
    "The user's words in a session with a task are kept verbatim with message and time; what an agent, a command's template, a draft or c2c wrote is never shown as theirs.",
  "words.A2":
    "The compaction's request, each note, the ledger's section and the next session's opening hold the user's words, the newest whole and first, and say that later ones count.",
  "words.A3":
    "A message that was undone takes with it its words, task, role and automatic task; undone and redone, all is as before.",
  "words.A4":
    "A summary that says less than the one before is recorded as what it is, with the last good handoff behind it in note, ledger and next session.",
  "words.A5": "All open todos are carried, those in progress first, with the number left out last.",
  "words.A6":
    "The note after a compaction holds the newest log lines; a session without a compaction leaves the end of its last answer.",
  "words.B1": "What comes from the ledger, a file's name or another session is quoted in one line or fenced.",
  "words.B4":
    "Earlier sessions on a task are called so; another agent is only one that was seen at work; a draft newer than the last handoff replaces it.",
  "words.C1": "The note never waits for its record beyond its own deadline.",

  "notices.A1":
    "What happens to a session's task, learnings, passes and records is shown in the TUI, each event once, in a toast that begins with Baton.",
  "notices.A2":
    'The setting "notices" shows all of them, only problems, or none; `opencode run` shows none and prints nothing of them.',

  "task.C2":
    "A ledger whose database is missing is not silently a new one: the first note, a toast and doctor say so, however the task is named.",

  "start.A1":
    "Each request of a session with a task holds the task, the same from turn to turn, within the budget; a child is told its parent's.",
  "start.A2":
    "The first request of a new session on a task holds the last handoff, the last log lines and where the work stood.",
  "start.A3": "A task that is unknown, done or canceled is said to the model and to the user, once.",
  "start.A5":
    "The task is bound before the request is sent; a ledger that does not answer is said, and the request goes on.",
  "start.A6": "The demo's agent knows only what its requests hold, and goes on in a new session after a crash.",

  "compaction.C1":
    "OpenCode finds the compaction plugin by itself, and its hook answers experimental.session.compacting.",
  "compaction.C2":
    "prompts/handoff.md is read at each compaction and becomes the prompt, with the built-in text as fallback.",
  "compaction.C3":
    "The prompt carries the task block, the prior summary and the facts, nothing twice; output.context gets block and facts.",
  "compaction.C4":
    "The task block holds identity, specification, brief, commands and protocol within a hard cap that names what it cut.",
  "compaction.C5":
    "Facts about files, failed commands, todos, git and compactions are gathered by program in bounded memory.",
  "compaction.C6": "The turn after a compaction knows the task whatever the summariser wrote.",
  "compaction.C7":
    "Each compaction is recorded once with prog log and a marked handoff section, with the specification untouched.",
  "compaction.C8": "A failed summary leaves no record; an empty one is recorded as empty, with the facts.",
  "compaction.C9": "Every branch is logged with its session and reason.",
  "compaction.C10": "The role prompts and the plugin keep one contract, held from both sides.",

  "start.A4":
    "A prompt file counts as Baton's only with its contract comment; a project's own of that name is left alone, and said so once.",

  "handoff.A1":
    "OpenCode finds the handoff plugin by itself; /handoff is registered with the template of prompts/handoff-command.md.",
  "handoff.A2":
    "The program adds the first request verbatim, files changed and read, open todos, git state, task ID and role.",
  "handoff.B1": "A draft is marker line, file references, task and role, prompt and facts, in this order.",
  "handoff.B2": "In a TUI the draft lands in a new session's prompt, once, with what the user had typed.",
  "handoff.B3":
    "Without a TUI the new session is created with draft and files, titled and verified, and no model starts.",
  "handoff.B4": "Files are checked before the draft is made; what is left out is named with its reason.",
  "handoff.B5": "Each handoff is recorded in the ledger and on disk, and its chain can be followed from either end.",
  "handoff.B6":
    "The new session, started or only stored, has the permission rules of the one that hands over, but in a TUI not what `opencode run` denies its own; where they are not known, nothing is delivered.",
  "handoff.C1": "File references are parsed by the document's rules and beyond them, in linear time.",
  "handoff.C2": "Files are shown as the document has it: header part, numbered lines, limits and footers.",
  "handoff.C3": "Only text files inside the worktree that hold no secrets are read, within a budget.",
  "handoff.C4": "Files are injected once, into the message that carries the marker, and agent and model stay.",
  "handoff.C5": "A deleted session's handoff state is freed.",
  "handoff.D1": "read_session gives the document's format, counts truly, and says plainly what it cannot read.",
  "handoff.D2": "read_session reads sessions of the chain; others of the same project only when asked to.",
  "handoff.D3": "read_session searches, pages back, and shows tools as asked for, within a cap.",
  "handoff.D4": "Reading the newest 100 of 10,000 messages costs under 150 ms and 20 MB.",
  "handoff.E1": "The whole way works on both OpenCode versions in run and serve, and in the real TUI.",
  "handoff.E2": "Hostile files, texts and sessions cost nobody a handoff.",
  "handoff.E3": "The documentation shows the TUI, and doctor knows the feature.",
  "handoff.F1":
    "A draft has what to review first, then definition of done, specification and the user's words, and nothing of Baton's own.",
  "handoff.F2":
    "handoff_session with start begins the new session's work at once where it can run, never more than five in a row.",
  "handoff.F3":
    "autoHandoff asks the agent of a task session once to hand over; without it nothing is loaded or added.",

  "live-state.A1": "Every line of the stream is protocol version 1 as the document has it, and tells nothing private.",
  "live-state.A2":
    "One writer per process and directory is started from an argument array, in the stated order of choice.",
  "live-state.A3": "Each writer's life begins with a snapshot; a writer that fails never costs OpenCode anything.",
  "live-state.A4": "Turns and steps are counted as the document says, provider and model when an event carries them.",
  "live-state.A5": "The state is the root session's; child sessions never alter it, and a second root leaves it right.",
  "live-state.A6": "Permissions set and clear the focus in both shapes; questions come and go with a snapshot each.",
  "live-state.A7": "Session id and alias come from the environment, else from the directory's name.",
  "live-state.A8": "Extensions tell task, compactions, handoffs, context and life, and never appear in strict mode.",
  "live-state.B1":
    "Baton's own statefile has the last state, also of a run of two seconds, and no reader ever sees half of it.",
  "live-state.B2": "A statefile that cannot be written is tried again, and said once.",
  "live-state.B3": "Two processes with one id keep a file each, and a stale file is recognised.",
  "live-state.C1": "baton observe shows every agent live in a terminal, plainly elsewhere, and as JSON.",
  "live-state.C2":
    "baton observe --web shows the same and a timeline of each agent on one local page, live, read-only and escaped.",
  "live-state.C3": "50 agents at 20 patches a second each leave the page responsive and the observer small.",
  "live-state.D1": "On both OpenCode versions the stream keeps the schema and the statefile is its reduction.",
  "live-state.D2": "Each rule of the document has its test, and no fault of the writer hangs, leaks or breaks a file.",
  "live-state.D3": "Events cost little, the file is never old, and memory stays flat.",
  "waiting.B1":
    "A subagent's permission or question, at any depth, and a provider that is asked again are shown in Baton's own statefile, in state, observe and the page, with whose they are; version 1 of the stream stays the root's.",
  "waiting.B2":
    "baton waiting lists all that waits in all projects of the account, with what to do; the account's onWaiting command runs once for each.",
  "waiting.B3":
    "In a session of c2c's a subagent's permission and question go to the supervisor like the root's; inbox and writer begin with OpenCode.",
  "live-state.E1":
    "In a session of c2c's its messages are delivered to the root session when it is idle, each once, also over a restart.",
  "live-state.E2":
    "Permissions and questions go to a configured supervisor and the answer back; a person who is faster wins, and without a supervisor nothing is sent or rejected.",
  "live-state.E3": "Where c2c's own plugin is, Baton runs no c2c and keeps its own statefile, and says so.",

  "learning.A1": "Only what the user wrote by hand is learned from; files touched come from tools' own results.",
  "learning.A2":
    "Whole sentences are kept in six types, with what they answered, the files between, session and task; confirmed when the agent changed its work unopposed.",
  "learning.A3":
    "On labelled sets, one of them written after the rules were frozen, 95 % of what is stored is right and 60 % is found.",
  "learning.A4": "A remark about one moment becomes a rule when it is said again; a general one at once.",
  "learning.B1":
    "Capture follows 2,000 ms of idleness, dispose and compaction; each message is looked at once however its process ends, repeats count, ten a session.",
  "learning.B2": "Learnings reach the ledger through the outbox, for one project, and secrets are never stored.",
  "learning.B3": "What a user said gets only concepts that agents chose in the project, or none.",
  "words.A3b":
    "A correction that was undone teaches nothing; undone and redone, it does; said again after an undo it counts once.",
  "words.B2": "What an agent writes with `prog learn` never comes back as the user's, whatever its text says.",
  "learning.C1":
    "A root session's first request and the one after a compaction hold the best few matching learnings as data, in one stable place.",
  "learning.C2":
    "learned and forget as tools and baton learned for people; a contradicted learning goes stale with a log line.",
  "learning.C3":
    "What agents stored with prog learn is recalled like the user's, marked as theirs, behind corrections, where it fits the session's task; baton learned lists and forgets it.",
  "learning.C4":
    "Of the learnings given with labelled requests of projects that the rules were not tuned on, 80 % fit; none about tests goes where no test is in sight.",
  "learning.D1": "An optional Markdown export is rendered and never read back.",
  "learning.E1":
    "A correction is in the next session's first request, not in another project's, not after forget; off, requests are unchanged.",
  "learning.E2": "Injected orders stay data, and huge messages, 10,000 learnings and two processes cost nothing.",
  "learning.E3": "A page, a README section and doctor checks know the feature.",

  "passes.A1":
    "A pass's agent may do what its own definition allows and its originator may do: never more, and never less.",
  "passes.A2":
    "A result says what its agent read, a verdict without reading too, and an agent without a shell is told no command of it.",
  "passes.A3":
    "What failed, timed out, was invalid or is partial goes to the originator at once, with its code and what was refused to the subagent.",
  "passes.A4":
    "Who approves a result reads verdict, counts, the critical finding and why it is asked in the question; the audit says who let it go or refused it.",
  "passes.A5":
    "An override of timeout_ms above the file's is reduced to it, and the answer says so; rights stay refused.",
  "passes.A6":
    "auto_apply writes many files in time that grows with their number, and holds what runs by itself by its kind, each with its reason.",
  "passes.A7":
    "A model starts a session of another agent only with rights that its own agent has; else the draft is stored, with the reason, and the user may start it.",
  "passes.A8":
    "A project's own plugin passes work over with one typed import, bound by the policy and the agent whose tool call it answers.",
  "pass-over.A1":
    "pass_over gives work with its context to a subagent in a child session and answers with a WorkOutput.",
  "pass-over.A2":
    "What a subagent returns is checked, refused twice with what is wrong, and made up from its transcript otherwise.",
  "pass-over.A3": "The originator applies, rejects and looks up what came back.",
  "pass-over.A4": "An asynchronous result is announced to its originator once, when that is idle.",
  "pass-over.A5": "A result text is enough to act on and always names the child's session.",
  "pass-over.A6":
    "Unless the policy says otherwise the user is asked before a result goes back; where nobody can be, it says so.",
  "pass-over.A7": "With cache on, the same question is answered by the stored output, marked as such.",
  "pass-over.A8": "Until a session has made a pass, its requests hold pass_over alone, in at most 1,600 characters.",
  "pass-over.A9":
    "A result that names another agent than its originator is refused, when it is returned and when it is stored.",
  "pass-over.A10":
    "auto_return goes without a question, but for completed work with a critical finding of an agent that may change files.",
  "pass-over.A11": "Passing work over is on after an installation, and off without its file.",
  "pass-over.A12":
    "baton passes show, diff, apply and reject let a person see a pass and decide on it by the rules of the agent's tools.",
  "pass-over.B1": "What a pass changed is seen in files and transcript, never taken from the subagent's claims.",
  "pass-over.B2":
    "A pass leaves the worktree as it was, and its changes are applied without overwriting anybody's work.",
  "pass-over.B3": "Passes at the same time never mix, and a crash in the middle of one loses nothing.",
  "pass-over.B4":
    "Git makes and compares a pass's files byte for byte, and runs nothing that the repository or its user configured.",
  "pass-over.B5":
    "A stored content that is missing or damaged, or a record that leads elsewhere, is refused and never acted on.",
  "pass-over.B7":
    "A process that lives is never taken for dead, and one that lost the lock of a pass says so and carries nothing.",
  "pass-over.B8":
    "What of a pass does not fit on the disk is named and left in its copy, never half stored, and a twentieth of the disk stays free.",
  "pass-over.B9":
    "Files that run are applied by name alone, never by policy; links and executables are named, and a link that leads out is refused unless it is named.",
  "pass-over.B10":
    'With "sandbox": "os" the operating system keeps the shell commands of a pass in its sandbox; where it cannot, nothing is passed.',
  "pass-over.C1": "Each value of a policy is resolved by itself, and the answer says which level it came from.",
  "pass-over.C2": "An invalid policy refuses passes with the line and what was expected; an override cannot widen.",
  "pass-over.C3": "A subagent's limits are enforced, and a child never has more rights than its originator.",
  "pass-over.C4":
    "When the time is up the originator goes on; a late result is kept and announced, never applied by itself.",
  "pass-over.C5": "A pair may have * on either side; the closer pair goes before it.",
  "pass-over.C6": "What the user wrote in the policy file, the defaults included, is not lifted by a model's override.",
  "pass-over.C7": "An agent whose own pass has timed out passes nothing on.",
  "pass-over.D1": "A pass to oneself, in a cycle, too deep, or one too many is refused with the chain shown.",
  "pass-over.D2": "Aborting the originator ends everything below it.",
  "pass-over.D3": "Sessions do not wait for each other's passes, nor for the recovery of earlier ones.",
  "pass-over.E1": "Every error has the document's code, a name, a cause, and a next step that is enough to act on.",
  "pass-over.E2": "What may pass is tried again with growing delays; each attempt is audited, and an abort ends it.",
  "pass-over.E3": "Every change of a pass is one line of the audit, without secrets, and baton passes reads it.",
  "pass-over.E4": "No sequence of events brings a pass into an illegal state or loses it.",
  "pass-over.E5":
    "An attempt that takes too long is tried again like a crash, from fresh files, within the time of the whole.",
  "pass-over.F1":
    "A skill that asks for it becomes a subagent, and an unknown subagent is refused with the nearest names.",
  "pass-over.F2": "audit and scout are there, unless the user has agents of these names.",
  "pass-over.G1": "The whole way works on both OpenCode versions.",
  "pass-over.G2": "Random passes under random faults lose no pass and change nothing that was not applied.",
  "pass-over.G3":
    "What a pass costs over a plain child session is published, and the audit query over 100,000 lines takes under 1 s.",
  "pass-over.G4": "The documentation has contract, policy, errors and a worked example, and doctor knows the feature.",

  "people.A2":
    "The new session is told which files were left out of the draft, and read_session shows /handoff as it was typed.",
  "people.A2a":
    "A session that begins with a draft is titled by the handoff's goal, as a stored one is, and no model is asked for a title.",
  "people.A3": "handoff_session is offered to a session that asks for a handoff, not to one that only has the word.",
  "people.C1":
    "No text holds the thread: for ten times the text each exported function that takes one needs no more than its share of time.",
  "people.B1":
    "The corrections that people type most are learned, in English, German, Spanish, French and Chinese: no, pnpm not npm; No emojis in commit messages.",
  "people.B2":
    "Requirements of the program, the day's talk, pasted chats, names and numbers of people teach nothing; what a session with a task is told with only stays with the task; the project's own name is no word that fits.",
  "people.B3":
    "Of a day's sentences in a session the ten of the most important types are learned: a lesser one makes way, and is taken back.",
  "people.C2":
    "An editing tool asks before it writes what OpenCode runs or takes rules from, in each folder up to the worktree; AGENTS.md stays free.",
  "people.C3":
    "A settings file that is no JSON, or has a wrong type or value, leaves off what can be off, and says so; comments and trailing commas are read, and secret files by their names are not loaded.",
  "people.C4":
    "A prompt file that gets its contract comment while OpenCode runs is Baton's after a restart; init after an uninstall that was killed brings policy and settings back.",
  "people.E1":
    "baton search finds all words in the project's past sessions, tasks and handoffs, the newest first, without secrets and with the way to read more; read_session finds them in one session.",
  "people.E2":
    "prog keeps the last seven daily copies of a database it made, whole, private and beside it; no command waits for one or fails by it, and doctor says the command that restores one.",
  "people.D1": "Each command of README, first-task, workers and tour is run by a test.",
  "people.D2":
    "init says what each of its two questions is about; options of a later run count; --dry-run fits on a screen.",
  "people.D2a": "The project's own npm package has none of Baton's files, however it chooses its own.",
  "people.D3a":
    "prog list and prog ready show the folder's project unless --all; with --json, and outside of Baton's projects, they are prog's. An unknown id is said in words.",
  "people.D3b": "A command tells a person commands of a person, and observe refuses state that is not this account's.",
  "people.D3":
    "The worktrees of a bare repository have the name of its folder as their project's, or the repository's without .git.",
  "people.A1":
    "A file named in a draft is found wherever its name ends, in any script; what is no file is neither loaded nor reported as missing.",
  "queue.A6":
    "An idle session gives its claim to the session of the same project that the user speaks to; one at work keeps it.",
  "queue.A1":
    "Each run of an agent on a task is a row with its worker, session, place, end and what it spent; its kind of end is judged by the task's status, then errors, then tools used.",
  "queue.A2":
    "An end gives the task back by its kind: a provider's is no attempt, three counted ones block it, a question waits for a person; each is a line in the log, and an answer is in the next first request.",
  "queue.A3":
    "claim --next hands out the tasks of workers that are gone, own host first, then ready ones; none is taken twice, and a worker's lease is renewed.",
  "work.B1":
    "baton work takes ready tasks one after the other, starts opencode run with the worker's prompt, watches its progress, judges the end and gives the task back; --worktrees keeps a worktree and branch a task until it is closed and merged, or dropped.",
  "work.B2":
    "Before the first claim baton work looks at model, worktree, ledger and checks, and touches no task where one is wrong; three provider ends in a row stop it, or wait until the time that the provider named and probe once.",
  "work.B3":
    "A killed agent is resumed in its session and folder once, else begins anew; ending one ends its shells; a killed baton work leaves nothing that the next does not find; status, pause, resume, drain and stop work from any terminal.",
  "work.B4":
    "A line check: COMMAND of a definition of done is run where the person allowed it; red opens the task again with the output in its log, and so does a stop that cuts the check off.",
  "work.B5":
    "A terminal shows a table over the queue, others get lines or JSON; baton report says what needs the person, what to merge, what is red, where the provider failed and what was spent; the next TUI session says that it is there.",
  "work.B6": "baton work is a program of its own: nothing of it is loaded by a plugin.",
  "queue.A3a":
    "claim --next takes the first task of `ready` by an index, so that its cost does not grow with the ledger's size.",
  "queue.A3b": "A new database that several processes make at the same moment is made once, and each write succeeds.",
  "queue.A5":
    "/task shows what is in progress and free first, then what is ready and what waits; a word searches. A sentence of the user's that takes up a task which the ledger knows binds it; any other mention of one is answered once by a notice, and a ticket of another tracker behind Task: is only words.",
  "queue.A4":
    "A task that Baton made of a first message is the conversation's: ready and claim --next leave it out until /task queue or prog start; questions and chatter make none, and its title is the first sentence that says something, in any script.",

  "cli.A1":
    "baton's commands follow one rule for folders that are no project, unknown options and commands, and times, and say their version.",
  "cli.A2": 'eval "$(baton env)" puts baton and prog on PATH.',
  "cli.A3": "All of baton's commands name the fields of their JSON in one style, and put no escape codes into a file.",

  "tour.A1": "The installation adds files, changes none, and ends with what comes next.",
  "tour.A2": "doctor finds nothing to mend, before the first session and after all the work.",
  "tour.A3": "A correction stands in the first request of a later session, and a person can look it up.",
  "tour.A4":
    "A review that is passed over comes back; of what another pass changed, what is taken is in the worktree, what is rejected is not.",
  "tour.A5":
    "Three compactions, good, careless and empty, are in the task's log, and the turn after each knows the task.",
  "tour.A6": "The session that the work is handed over to knows task, role, brief and files.",
  "tour.A7": "After a restart of OpenCode the work goes on, through another compaction.",
  "tour.A8": "An observer sees the agent at work in a terminal and in a browser.",
  "tour.A9": "Uninstalled, the project is byte for byte what it was, but for the user's and the agents' own work.",
  "tour.B1": "The page of the tour shows such a run, with its own commands, outputs and pictures.",

  "trust.A3":
    "No command that a project's file names is run: the account's settings alone name one. OpenCode's switches against a project's configuration are respected.",
  "trust.A4":
    "Every file that a repository may have put there is read by one function that no pipe, device or link holds up, and git is run by one that runs nothing of the repository's.",
  "trust.B1":
    "Text of agents is data everywhere: it steers no terminal, holds no thread up as a pattern, and is quoted where the model reads it.",
  "proof.D1": "Each claim of the security page, and each rule of the live state, names a test that holds it.",
  "identity.A2": "One task ID and role are seen by every system, from the first message to the ledger.",

  "ledger.D1":
    "The client runs the real prog with exact arguments, a deadline, one call at a time, and leaves a foreign prog alone.",
  "ledger.D2": "A ledger write is on disk before it is tried and is delivered later, in order, exactly once.",
  "ledger.D3": "The embedded ledger gives the same commands on the same database for machines without prog.",
  "ledger.D4": "bin/prog picks the real or the embedded ledger, needs no Bun, and is on the agent's PATH.",
  "ledger.D5": "Embedded and real ledgers pass one contract suite, and a differential test compares them.",

  "install.E1":
    "install copies the bundle without touching the user's own work, and uninstall removes exactly what it put there.",
  "install.F1": "The policy of passes is there after an installation, and stays as the user changed or deleted it.",
  "install.E2": "doctor finds what is broken, says how to mend it, and changes nothing.",
  "install.E3": "demo runs real compactions, shows what an observer sees, and fails when a claim of its own fails.",
  "install.E4": "An agent's searches find the user's project and not the installed bundle.",
  "install.E5": "install runs on OpenCode, Bun or Node 20, whichever is there alone, and says so when none is.",
  "install.E6":
    "install says what to do in git and where the tasks are; uninstall, that they stay and how to read them.",
  "install.E7":
    "Prompts go to prompts/ where that folder is Baton's or not there, else to .opencode/prompts; the project's own stay alone.",
  "install.G1": "Installation acts on no bundle that came with the repository until it is told to take it over.",
  "install.G2":
    "doctor calls what differs from the manifest, or is not on it, broken, and imports no such file and none of another account.",
  "install.G3":
    "Every package that a script of the repository installs has its hash, and no install script of a package runs.",
  "install.E8":
    "An installed bundle brings zod along and needs no other package; in a clone OpenCode 1 installs it at its first start, and the plugins serve that very start.",

  "package.A1":
    "The tarball of npm pack installs, updates, checks and removes Baton by one command, from an empty folder, with zod as its one dependency; it holds the bundle and nothing of tests, benchmarks and pictures.",
  "package.A2": "update keeps what the user changed, and shows the difference.",
  "package.A3":
    "init asks at most two things, on a terminal alone, and ends with the three lines that a user needs next.",
  "package.A4": "init --global serves every project from OpenCode's global folder, and uninstall --global removes it.",
  "package.A7":
    "init, update and doctor say which versions of OpenCode Baton is run on, what is not there yet on OpenCode 2, and what to report of a newer one.",
  "package.D1":
    "As a plugin from npm the package gives all five features, with no files in the project but state and prompts.",
  "package.D2":
    "doctor says which copy serves a project without one of its own, a global one or the npm plugin, and checks that.",
  "trust.A1":
    "State that this account did not make in this very folder, that git tracks, or that is a link, is put aside without being read; log, toast and doctor name it, and baton trust state takes it back.",
  "trust.A2":
    "What is read from the state acts within its project alone: on paths inside, and on words that OpenCode has.",
  "trust.A5":
    "All that is stored has one format with a number: this version reads what it wrote, and leaves the state of a newer format where it is and says so.",
  "trust.A7":
    "State, audit, and the ledger's folder that Baton makes are readable to their account alone; a pass's copy keeps the permissions of files and folders.",
  "trust.A8":
    "The page of baton observe tells another account nothing, also after the command has ended, and it cannot lock the owner out.",
  "guard.A1":
    "No editing tool of an agent changes Baton's program, plugins, state or audit, under any name of the file, unless a rule of the user's own names it.",
  "guard.A2": "Baton's settings and prompts are changed by an agent only after the user was asked.",
  "guard.A3":
    "The user's own permission rules keep their meaning, and an agent that may change no file has the tools it had.",
  "guard.A4": "The agent's PATH holds prog and nothing else of Baton's.",

  "faults.F1": "Under every fault of the table a run ends as it would without the bundle, and the record is kept.",
  "faults.F2": "No hook outlives its deadline, a run exits in time, and a kill loses at most the record being written.",

  "storm.B1":
    "Each run of the storm is decided by its seed, and the storm draws every fault of every fault table, and pairs of them.",
  "storm.B2":
    "Under random faults, several at once, OpenCode neither crashes nor hangs, no record is lost or doubled, and no file outside is read or written.",
  "storm.B3":
    "The storm notices a lost record, a changed file, an access outside, a crash, a hang and a process that stays.",

  "speed.G1":
    "Loading the bundle costs under 10 ms, and a run's start under 6 %, with a task under 10 %; features, ledger and zod come at first use.",
  "speed.G2": "The compacting hook costs the same at 10 and at 10,000 messages.",
  "speed.G3": "An event the bundle does not need costs under 2 µs.",
  "speed.G4": "An embedded log costs under three times an empty script of the same runtime.",
  "speed.G5": "The retention table is measured for plain OpenCode and Baton on both versions.",

  "peers.C1":
    "Baton is measured beside its peers in one run on the same work, and the page says in words where a peer is better.",
  "soak.B3": "Along 500 compactions and 20,000 messages of one session, memory, handles, times and files stay flat.",
  "soak.B4": "What a session makes the bundle hold, in memory and for itself on disk, goes with the session.",
  "claim.B1":
    "A task that a session works on is claimed and, when open, started; the claim is renewed, released at the session's end, and free when its process is gone.",
  "claim.B2":
    "A second session on a claimed task is told by whom and since when, in its first request, by a toast and after a compaction; exclusive claims refuse its changes to files and say how to go on.",
  "claim.B3":
    "prog claim, release and claims are atomic among processes, also on the real prog's database; -p is the folder's project where a command needs one.",

  "sessions.A1":
    "A session that ends without a compaction leaves in the ledger what it changed and what failed; a crash is logged.",
  "sessions.A2":
    "Several sessions on one task keep a handoff each in its description, three at most, and the log names the session.",
  "outbox.A1":
    "baton outbox lists what waits or is parked, and why; it delivers records again, or to another task, once and in order.",
  "soak.B5": "A feature that is disposed of leaves no child, no timer and no open descriptor.",
  "tokens.C2":
    "A feature adds nothing to a request that does not use it; what it adds to one that does is known by kind of request.",

  "words.B1a": "A claim's holder is a name on one line: prog claim refuses any other and says what it received.",
  "words.B3":
    "c2c's messages are another agent's: they bind nothing, teach nothing, are no brief; their envelope cannot be closed or forged from inside.",
  "words.D1":
    "README's first commands run in a clone, the first message after them becomes a task, and doctor finds nothing to mend there.",
  "words.A5a": "No text is cut through a character: one function cuts.",
  "words.A5b": "Failing commands, todos and the facts of a handoff are redacted.",
  "words.A5c":
    "A key or token that the user types is for the conversation alone: it is kept neither in the state nor in the ledger, also where the message becomes a task or a summary repeats it.",

  "v2.A1":
    "Features speak to one port: OpenCode 2 is an adapter below host/opencode-2, and a feature asks for an ability, never for the line.",
  "v2.A2": "Each plugin file loads on 1.2.15, 1.18.33 and 2.0.15, and serves once on each; none is listed as failed.",
  "v2.A3":
    "On OpenCode 2 setup ends in time, no failing or late hook fails a turn, a reload starts the plugins again that it concerns, and the end of a location ends all.",
  "v2.A4":
    "In a clone the first start on OpenCode 2 has the package manager in OpenCode's binary install zod, once, in the background.",
  "v2.B1": "On OpenCode 2 each request of a session with a task holds the task, the first already, also in a child.",
  "v2.B2":
    "On OpenCode 2 the summary is written by Baton's prompt, recorded once, and each later request holds the note beside it.",
  "v2.B3":
    "On OpenCode 2 a summary that fails, is empty, refuses or says less than the one before is replaced by the last handoff and the facts; ledger and note say it as on OpenCode 1, and the session goes on.",
  "v2.B4": "On OpenCode 2 prog is on the agent's PATH, /task answers, and tools are offered under their own names.",
  "v2.B5": "On OpenCode 2 the agent's editing tools are kept from Baton's own files.",
  "v2.B6": "On OpenCode 2 a correction is learned and given to the next session.",
  "v2.B7":
    "On OpenCode 2 no answer of a model ends a session, also without a task, or where Baton's own prompt is late: the user's words and the facts stand in.",
  "v2.B8":
    'With "compaction": "opencode" the summary is OpenCode\'s own and is given the task; the note of later requests holds it, too.',
  "v2.B9":
    "On OpenCode 2 an order that was undone is told to no later request, compaction or session, and a redo brings it back.",
  "v2.B10": "On OpenCode 2 a provider's own compaction is left alone, and the note of later requests holds the task.",
  "v2.B11":
    "On OpenCode 2 an agent's `run` is told from a server by the process that started it, and is kept with its end.",
  "v2.B12":
    "On OpenCode 2 the older part of a conversation alone is summed up where the whole cannot be, as by OpenCode's own way.",
  "v2.B13": "On OpenCode 2 a new session with a task is titled by the task, without a request to a model.",
  "v2.C2":
    "On OpenCode 2 a session with Baton lives through each kind of summary and keeps its task; plain OpenCode 2 is shown beside it.",
  "v2.C3": "The storm runs on OpenCode 2, too, with the faults that there are on it.",
  "v2.C4": "The demo tells its story on OpenCode 2, too, with each claim checked.",
  "v2.C0": "What Baton cannot do on OpenCode 2 yet is off there: one line of the log and of doctor says so.",
  "v2.C1":
    "The tests of compaction, task, ledger, learning and trust run on OpenCode 2, too; what cannot is listed with its reason.",
} as const

export type RequirementId = keyof typeof REQUIREMENTS

/**
 * A test's name that cites what it holds: `test(promised("task.B1", "reads an id inside a fence"), …)`.
 * Citing several: `promised(["task.B1", "compaction.C10"], "…")`.
 */
export const promised = (ids: RequirementId | readonly RequirementId[], sentence: string): string =>
  `${[ids].flat().join(" ")}: ${sentence}`
