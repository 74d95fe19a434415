type Say = (...args: readonly string[]) => Promise<string>

export type StoryIds = {
  readonly tasks: readonly string[]
  readonly epic: string
  readonly learnings: readonly string[]
}

/**
 * A story that uses every command that writes, and shows what it wrote as it goes. Each thing has one dependency and one
 * concept at most, since prog orders those by their random ids.
 * @param tellers take the lines in turn: one ledger, or two that share a database
 */
export const tellStory = async (tellers: readonly Say[]): Promise<StoryIds> => {
  let turn = 0
  /** @param line is split at its spaces; `more` holds arguments with spaces */
  const say = (line: string, ...more: readonly string[]): Promise<string> => {
    const teller = tellers[turn % tellers.length]
    turn += 1
    if (teller === undefined) throw new Error("a story needs a teller")
    return teller(...line.split(" "), ...more)
  }
  /** Says lines in turn, and drops their answers. */
  const go = async (...lines: readonly string[]): Promise<void> => {
    for (const line of lines) await say(line)
  }
  await say("init")
  const epic = await say("add -e -p demo -d", 'Why\n\nand "how"', "An epic")
  const plain = await say("add Plain words -p demo")
  const full = await say(
    `add -p demo --priority 1 --parent ${epic} --blocks ${plain} -l bug -l zwei -d`,
    ...["about Auth", "--dod", "Green\nand reviewed", "Full <b>&</b> 🙂"],
  )
  const other = await say("add --priority -3 -p", "other project", "--", "-dash")
  const doomed = await say("add doomed -p demo")
  await say(`log ${full}`, "first `line` $(x)")
  await say(`log ${full} -- -second`, "line\nof two")
  await go("log ts-000000 nothing", `show ${full}`, `append ${plain} more`, `append ${plain} and more`)
  await say(`desc ${other}`, "new\twords")
  await say(`edit ${other} --title Renamed`)
  await say(`edit ${other} --dod`, "A criterion")
  await say(`edit ${full} --title ignored --dod`, "")
  await go(`start ${full}`, "list --status in_progress", `review ${full}`, `review ${plain}`, `show ${epic}`)
  await go(`done ${full}`, `open ${plain}`, `start ${epic}`, `cancel ${other} no longer`, "status")
  await go(`parent ${plain} ${epic}`, `parent ${plain} ${full}`, `blocks ${plain} ${other}`, `blocks ${plain} ${plain}`)
  await go(`label ${plain} quo"ted`, `label ${plain} gone`, `unlabel ${plain} gone`, `unlabel ${plain} gone`)
  await go("label ts-000000 x", `project ${doomed} third`, `delete ${doomed}`)
  await go("labels add explicit -p demo --color #123456", "labels add explicit -p demo")
  await go("labels rename explicit renamed -p demo", "labels rm gone -p demo", "labels -p demo")
  await say("learn Tokens race -p demo -c Auth -f a.go -f", "b c.go", "--detail", "Long & <why>")
  await say(`start ${plain}`)
  const linked = (await say("learn -p demo -c http", "linked one")).slice(0, "lrn-000000".length)
  const stale = await say("learn -c Auth -p", "other project", "stale one")
  const removed = await say("learn removed -c gone -p", "other project")
  await say(`learn edit ${linked} --summary`, "linked, edited")
  await say(`learn edit ${linked} --detail`, "with detail")
  await go(`learn stale ${stale} --reason old`, `learn rm ${removed}`, `learn rm ${removed}`)
  await say("concepts Auth -p demo --summary", "Who may do what, and how the tokens are kept — ünd so weiter")
  await say("concepts http -p demo --rename web")
  await say("prime")
  return { tasks: [plain, full, other], epic, learnings: [linked, stale] }
}

const STATUSES = ["open", "in_progress", "blocked", "reviewing", "done", "canceled"]

/** Every command that reads, over everything the story left. */
export const readEverything = ({ tasks, epic, learnings }: StoryIds): readonly (readonly string[])[] => {
  const textOrJson = [
    ...["list", "list -p demo", "list -l bug", "list --has-blockers", "list --no-blockers", "list --type epic"],
    ...[`list --parent ${epic}`, `list --blocking ${tasks[2]}`, "ready", "ready -p demo"],
    ...STATUSES.map((status) => `list --status ${status}`),
    ...["context -p demo --summary", "context -p demo -c Auth -c web", "context -p demo -q a-b"],
    ...learnings.map((id) => `context --id ${id}`),
  ].map((line) => line.split(" "))
  textOrJson.push(
    ["context", "-p", "demo", "-q", "tokens OR linked"],
    ["context", "-p", "other project", "-c", "Auth", "--include-stale"],
  )
  const textAlone = [
    ...["status", "status -p demo --all", "status -l bug", "projects", "graph", "prime", "labels -p demo"],
    ...["concepts -p demo", "concepts -p demo --recent", "concepts -p demo --stats"],
    "context -p demo -c Auth -c web --summary",
  ].map((line) => line.split(" "))
  return [
    ...[...tasks, epic].flatMap((id) => [
      ["show", id],
      ["show", id, "--json"],
      ["concepts", "--related", id],
    ]),
    ...textOrJson,
    ...textOrJson.map((line) => [...line, "--json"]),
    ...textAlone,
  ]
}
