import { circlesAmong, linesOf, reachedFrom, sourceFiles } from "../../test/support/files/source-files.ts"

const row = (name: string, ...numbers: readonly number[]): void =>
  console.log(name.padEnd(24) + numbers.map((number) => number.toLocaleString("en").padStart(10)).join(""))

const files = sourceFiles(".opencode")
const rooms = Map.groupBy(files, (path) => path.split("/").slice(1, -1).slice(0, 2).join("/"))
console.log(`${"".padEnd(24)}     files     lines   longest`)
for (const [room, paths] of rooms)
  row(room, paths.length, linesOf(paths), Math.max(...paths.map((path) => linesOf([path]))))
row("in all", files.length, linesOf(files))
row("circles of imports", circlesAmong(files).length)
row("tests", sourceFiles("test").length, linesOf(sourceFiles("test")))

console.log(`\n${"plugin".padEnd(24)} at start   at last     lines`)
for (const plugin of sourceFiles(".opencode/plugins")) {
  const all = reachedFrom([plugin], { dynamic: true })
  row(plugin.split("/").at(-1) ?? plugin, reachedFrom([plugin]).length, all.length, linesOf(all))
}
