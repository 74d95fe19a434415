import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { REDACTED, redact } from "../../../.opencode/baton/host/secrets.ts"
import { promised } from "../../requirements.ts"

const LONG = "aB3".repeat(12)

describe("redacting", () => {
  test.each([
    ["a key", `sk-${LONG}`],
    ["a project's key", `sk-proj-${LONG}`],
    ["a token of a code host", `ghp_${LONG}`],
    ["a fine-grained one", `github_pat_${LONG}`],
    ["another host's", `glpat-${LONG}`],
    ["a cloud's key id", "AKIAIOSFODNN7EXAMPLE"],
    ["a search key", `AIza${LONG}`],
    ["a chat's token", `xoxb-1234567890-${LONG}`],
    ["a registry's token", `npm_${LONG}`],
    ["a web token", `eyJhbGciOiJIUzI1NiJ9.${LONG}.${LONG}`],
    ["a private key", `-----BEGIN RSA PRIVATE KEY-----\n${LONG}\n${LONG}\n-----END RSA PRIVATE KEY-----`],
    [
      "an encrypted private key",
      `-----BEGIN RSA PRIVATE KEY-----\nDEK-Info: AES-128-CBC,00\n\n${LONG}\n-----END RSA PRIVATE KEY-----`,
    ],
    [
      "another program's private key",
      `-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n${LONG}\n-----END PGP PRIVATE KEY BLOCK-----`,
    ],
    ["an access token of a cloud", `ya29.${LONG}`],
    ["a mailer's key", `SG.${LONG}.${LONG}`],
    ["a webhook's secret", `whsec_${LONG}`],
    ["half a private key", `-----BEGIN PRIVATE KEY-----\n${LONG}`],
  ])(promised("pass-over.E3", "takes out %s, and nothing around it"), (_what, secret) => {
    expect(redact(`before ${secret}`)).toBe(`before ${REDACTED}`)
    expect(redact(`(${secret}) after`)).toMatch(/^\(\[redacted\]\)? ?(?:after)?$/)
  })

  test.each([
    ["Authorization: Bearer abc.def-ghi_jkl", `Authorization: Bearer ${REDACTED}`],
    ["https://user:pa55word@example.com/x", `https://user:${REDACTED}@example.com/x`],
    ["password=hunter22, user=me", `password=${REDACTED}, user=me`],
    ['{"api_key": "abcd1234", "n": 1}', `{"api_key": "${REDACTED}", "n": 1}`],
    ["export DB_PASSWORD='s3cr3t!' && run", `export DB_PASSWORD='${REDACTED}' && run`],
    ['password="my long pass, word"', `password="${REDACTED}"`],
    [`{'secret': 'it is "this" one'}`, `{'secret': '${REDACTED}'}`],
    ["login --password hunter22 --user me", `login --password ${REDACTED} --user me`],
    ["https://hooks.slack.com/services/T000/B000/abcdef", `https://hooks.slack.com/services/${REDACTED}`],
    ["GITHUB_TOKEN: abcdefgh", `GITHUB_TOKEN: ${REDACTED}`],
  ])(promised("pass-over.E3", "%j becomes %j"), (text, expected) => {
    expect(redact(text)).toBe(expected)
  })

  test.each([
    "Review the token parser in src/token.ts",
    "the password field is empty: fix it",
    "see https://example.com:8080/a@b",
    "skip sk-8 and sk-learn-extra",
    "commit 3f2a9c01d4e5b6a7988776655443322110ffeedd",
    "secretary: Alice",
    "use --token only with --verbose",
  ])(promised("pass-over.E3", "leaves %j as it is"), (text) => {
    expect(redact(text)).toBe(text)
  })

  test(promised("pass-over.E3", "changes nothing the second time, and ends on a megabyte of anything"), () => {
    const piece = fc.constantFrom(
      "sk-",
      "token=",
      "://u:",
      "@",
      " ",
      "eyJ",
      ".",
      LONG,
      "-----BEGIN ",
      "PRIVATE KEY-----",
      "é",
    )
    fc.assert(
      fc.property(fc.array(piece), (pieces) => {
        const once = redact(pieces.join(""))
        expect(redact(once)).toBe(once)
      }),
    )
    for (const text of ["a", "-----BEGIN A PRIVATE KEY-----", "eyJ", "x://", "password", "sk-", "bearer "])
      expect(redact(text.repeat(1_000_000 / text.length)).length).toBeGreaterThan(0)
  })
})
