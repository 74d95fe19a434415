import { mkdirSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { describe, expect, test } from "vitest"
import { loadFiles } from "../../../.opencode/baton/handoff/files.ts"
import { readReferences } from "../../../.opencode/baton/handoff/references.ts"
import { promised } from "../../requirements.ts"
import { temporaryFolder } from "../../support/unit.ts"

const FILES = [
  "a.ts",
  "b.ts",
  "Makefile",
  "README.md",
  "src/utils.ts",
  "src/parser.test.ts",
  "src/app/@modal/default.tsx",
  "docs/设计.md",
  "docs/größe.md",
  "app/(auth)/[id]/page.tsx",
  "assets/logo@2x.svg",
  "it's.md",
]

/** A draft, the files that it loads (with their lines), and those that are reported as missing. */
type Draft = readonly [text: string, loaded: readonly string[], missing?: readonly string[]]

const ENDS: readonly Draft[] = [
  ["请看@docs/设计.md，然后改@src/utils.ts。", ["docs/设计.md", "src/utils.ts"]],
  ["修改@src/utils.ts的导出", ["src/utils.ts"]],
  ["@src/utils.tsの型を直して", ["src/utils.ts"]],
  ["@src/utils.ts를 고쳐 줘", ["src/utils.ts"]],
  ["แก้@src/utils.tsให้หน่อย", ["src/utils.ts"]],
  ["（@a.ts）と「@b.ts」", ["a.ts", "b.ts"]],
  ["@a.ts：解析", ["a.ts"]],
  ["@a.ts：10 を見て", ["a.ts 10-"]],
  ["Сравни @a.ts, «@b.ts» и @src/utils.ts;", ["a.ts", "b.ts", "src/utils.ts"]],
  ["„@src/utils.ts“ prüfen", ["src/utils.ts"]],
  ["»@Makefile« lesen", ["Makefile"]],
  ["« @a.ts » puis ‹@b.ts›", ["a.ts", "b.ts"]],
  ["‘@a.ts’ and ‚@b.ts‘", ["a.ts", "b.ts"]],
  ["siehe @a.ts-Datei und @b.ts–Teil", ["a.ts", "b.ts"]],
  ["@a.ts's exports, @b.ts’s too", ["a.ts", "b.ts"]],
  ["@a.ts'yi oku", ["a.ts"]],
  ["@a.ts:n rivit", ["a.ts"]],
  ["@a.ts:parse is slow", ["a.ts"]],
  ["@a.ts#parse", ["a.ts"]],
  ["@a.ts::parse()", ["a.ts"]],
  ["@a.ts:L10", ["a.ts 10-"]],
  ["@a.ts:L10-L20", ["a.ts 10-20"]],
  ["@a.ts:10–20 and @b.ts:3—4", ["a.ts 10-20", "b.ts 3-4"]],
  ["@a.ts:10-20: the loop", ["a.ts 10-20"]],
  ["@a.ts#L10–L20", ["a.ts 10-20"]],
  ["@a.ts#L10C4", ["a.ts 10-"]],
  ["@a.ts;@b.ts", ["a.ts", "b.ts"]],
  ["@a.ts|@b.ts", ["a.ts", "b.ts"]],
  ["| @a.ts| parser |\n|@b.ts|lexer|", ["a.ts", "b.ts"]],
  ["@a.ts/@b.ts", ["a.ts"]],
  ["_@a.ts_ and __@b.ts__", ["a.ts", "b.ts"]],
  ["*@a.ts* ~~@b.ts~~", ["a.ts", "b.ts"]],
  ["<b>@a.ts</b> <code>@b.ts</code>", ["a.ts", "b.ts"]],
  ["[@a.ts](@b.ts)", ["a.ts", "b.ts"]],
  ["@a.ts->@b.ts", ["a.ts", "b.ts"]],
  ["@a.ts→@b.ts", ["a.ts", "b.ts"]],
  ["@a.ts—see there", ["a.ts"]],
  ["@a.ts=>done", ["a.ts"]],
  ["@a.ts… @b.ts...", ["a.ts", "b.ts"]],
  ["@a.ts.Then @b.ts.", ["a.ts", "b.ts"]],
  ["“@a.ts”, “@b.ts”", ["a.ts", "b.ts"]],
  ["fix @a.ts!!! @b.ts?!", ["a.ts", "b.ts"]],
  ["@README.md*", ["README.md"]],
  ["@app/(auth)/[id]/page.tsx)", ["app/(auth)/[id]/page.tsx"]],
  ["@docs/größe.mdを", ["docs/größe.md"]],
  ["@it's.md @\"it's.md\":2", ["it's.md", "it's.md 2-"]],
  ["@assets/logo@2x.svg", ["assets/logo@2x.svg"]],
  ["@src/app/@modal/default.tsx", ["src/app/@modal/default.tsx"]],
]

const OTHERS: readonly Draft[] = [
  ["node_modules/@types/react/index.d.ts is wrong", []],
  ["src/app/@modal/default.tsx renders twice", []],
  ["https://unpkg.com/@babel/standalone@7/babel.min.js", []],
  ["https://medium.com/@someone/a-post.md", []],
  ["C:\\proj\\@types\\a.ts", []],
  ["use @pytest.fixture and @app.route('/x')", []],
  ["@org.junit.Test @Override @Component({})", []],
  ["npm i @types/node@20.1.1 @angular/core@latest", []],
  ["@angular/core/testing, @acme/ui/button.css", []],
  ["import x from '@/components/Button.tsx'", []],
  ["thanks @alice and @bob.smith", []],
  ["mail me@example.com or <you@b.ts>", []],
  ["//@ts-ignore above it", []],
  ["@media (max-width: 3px) @import url(x)", []],
]

const MISSING: readonly Draft[] = [
  ["@src/gone.ts", [], ["src/gone.ts"]],
  ["@src/gone/deep.xyz", [], ["src/gone/deep.xyz"]],
  ["@gone.md and @a.ts", ["a.ts"], ["gone.md"]],
  ["(see @src/gone.ts).", [], ["src/gone.ts"]],
  ["„@gone.py“", [], ["gone.py"]],
  ["@./gone", [], ["./gone"]],
  ['@"gone"', [], ["gone"]],
  ["@a.tsx", [], ["a.tsx"]],
  ["@Makefile.am", []],
]

const DRAFTS = [...ENDS, ...OTHERS, ...MISSING].map(([text, loaded, missing = []]) => [text, loaded, missing] as const)

describe("the files that a draft names", () => {
  test.each(DRAFTS)(promised("people.A1", "%j loads %j and reports %j"), async (text, loaded, missing) => {
    const base = temporaryFolder()
    for (const file of FILES) {
      mkdirSync(dirname(join(base, file)), { recursive: true })
      writeFileSync(join(base, file), "one\ntwo\nthree\n")
    }
    const budget = { maxFiles: 20, maxBytes: 100_000 }
    const { references, leftOut } = await loadFiles({ root: base, base }, readReferences(text), { budget })
    const shown = references.map(({ path, lines }) => (lines ? `${path} ${lines.first}-${lines.last ?? ""}` : path))
    expect(shown).toEqual(loaded)
    expect(leftOut.map(({ path }) => path)).toEqual(missing)
  })
})
