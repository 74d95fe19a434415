/** The small project of the scenes: files that stay as they are while an agent teaches its parser CRLF. */

export const LEXER = `export const readWord = (line) => line.split(" ")[0]
`

export const PARSER_TEST = `import assert from "node:assert/strict"
import { test } from "node:test"
import { parse } from "../src/parser.js"

test("LF", () => assert.deepEqual(parse("a b\\nc"), ["a", "c"]))
test("CRLF", () => assert.deepEqual(parse("a\\r\\nc"), ["a", "c"]))
test("a lone CR ends no line", () => assert.deepEqual(parse("a\\rb"), ["a\\rb"]))
test("the last line has no end", () => assert.deepEqual(parse("a\\r\\nb\\r"), ["a", "b"]))
`
