import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { findSecret, REDACTED, redact, SECRET_RULES } from "../../../.opencode/baton/host/secrets.ts"
import { promised } from "../../requirements.ts"
import { forAll } from "../../support/for-all.ts"

const MIXED = "aB3dE6gH9jK2mN5pQ8rS1tU4vW7xY0zA3bC6dE9fG2hJ5kL8mN1pQ4rS7tU0vW3xY6zA9bC2dE5fG8hJ1kL4mN7pQ0rS"
const HEX = "0123456789abcdef".repeat(8)
const UPPER = "A2B3C4D5E6F7G2H3J4K5L6M7N2P3Q4R5S6T7U2V3W4X5Y6Z7A2B3C4D5E6F7G2H3"

/** Invented, and built at run time so that no file of the repository holds one. */
const EXAMPLES: Record<string, string> = {
  "1password-service-token": `ops_${"eyJ"}${MIXED}`,
  "age-secret-key": `AGE-SECRET-KEY-1${UPPER.replaceAll(/[1BIO]/g, "Q").slice(0, 58)}`,
  "anthropic-key": `sk-${"ant"}-${MIXED}`,
  "atlassian-token": `ATATT3${MIXED}`,
  "aws-access-key": `AKIA${UPPER.slice(0, 16)}`,
  "azure-client-secret": `abc8Q~${MIXED.slice(0, 34)}`,
  "bearer-header": `Bearer ${MIXED.slice(0, 30)}`,
  "cloudflare-origin-key": `v1.0-${HEX.slice(0, 24)}-${HEX.slice(0, 110)}`,
  "databricks-token": `dapi${HEX.slice(0, 32)}`,
  "digitalocean-token": `dop_v1_${HEX.slice(0, 64)}`,
  "discord-webhook": `discord.com/api/webhooks/123456/${MIXED.slice(0, 60)}`,
  "docker-token": `dckr_pat_${MIXED.slice(0, 27)}`,
  "doppler-token": `dp.pt.${MIXED.slice(0, 43)}`,
  "facebook-token": `EAA${MIXED.slice(0, 70)}`,
  "figma-token": `figd_${MIXED.slice(0, 40)}`,
  "fly-token": `fo1_${MIXED.slice(0, 43)}`,
  "github-token": `ghp_${MIXED.slice(0, 36)}`,
  "gitlab-token": `glpat-${MIXED.slice(0, 20)}`,
  "google-api-key": `AIza${MIXED.slice(0, 35)}`,
  "google-oauth-secret": `GOCSPX-${MIXED.slice(0, 28)}`,
  "grafana-token": `glsa_${MIXED.slice(0, 40)}`,
  "groq-key": `gsk_${MIXED.slice(0, 52)}`,
  "hashicorp-vault-token": `hvs.${MIXED.slice(0, 30)}`,
  "heroku-key": `HRKU-${MIXED.slice(0, 40)}`,
  "hugging-face-token": `hf_${MIXED.slice(0, 34)}`,
  "json-web-token": `${"eyJ"}${MIXED.slice(0, 20)}.eyJ${MIXED.slice(0, 20)}.${MIXED.slice(0, 30)}`,
  "linear-key": `lin_api_${MIXED.slice(0, 40)}`,
  "mailchimp-key": `${HEX.slice(0, 32)}-us12`,
  "mailgun-key": `key-${HEX.slice(0, 32)}`,
  "new-relic-key": `NRAK-${UPPER.slice(0, 27)}`,
  "notion-token": `ntn_${MIXED.slice(0, 46)}`,
  "npm-token": `npm_${MIXED.slice(0, 36)}`,
  "openai-key": `sk-${"proj"}-${MIXED.slice(0, 48)}`,
  "planetscale-token": `pscale_tkn_${MIXED.slice(0, 43)}`,
  "postman-key": `PMAK-${HEX.slice(0, 24)}-${HEX.slice(0, 34)}`,
  "private-key": `-----BEGIN RSA ${"PRIVATE"} KEY-----`,
  "pypi-token": `pypi-AgE${MIXED}`,
  "sendgrid-key": `SG.${MIXED.slice(0, 22)}.${MIXED.slice(0, 43)}`,
  "sentry-token": `sntrys_${MIXED.slice(0, 64)}`,
  "shopify-token": `shpat_${HEX.slice(0, 32)}`,
  "slack-token": `xoxb-${"123456789012"}-${MIXED.slice(0, 24)}`,
  "slack-webhook": `https://hooks.slack.com/services/T00000000/B00000000/${MIXED.slice(0, 24)}`,
  "square-token": `sq0atp-${MIXED.slice(0, 22)}`,
  "stripe-key": `sk_${"live"}_${MIXED.slice(0, 24)}`,
  "telegram-token": `123456789:AA${MIXED.slice(0, 33)}`,
  "twilio-key": `SK${HEX.slice(0, 32)}`,
  "xai-key": `xai-${MIXED.slice(0, 80)}`,
  "url-with-password": "postgres://admin:hunter2@db.internal/app",
}

describe("secrets", () => {
  test(promised("learning.B2", "each rule has an example of its own"), () => {
    expect(Object.keys(EXAMPLES).toSorted()).toEqual(SECRET_RULES.map(({ id }) => id).toSorted())
  })

  test.each(Object.entries(EXAMPLES))(promised("learning.B2", "%s is recognised in a sentence"), (id, secret) => {
    const matching = SECRET_RULES.filter(({ pattern }) => pattern.test(`No, use ${secret} instead.`))
    expect(matching.map((rule) => rule.id)).toContain(id)
    expect(findSecret(`No, use ${secret} instead.`)).toBeDefined()
  })

  test.each([
    "No, the password is hunter2, not admin.",
    "Use API_KEY=abc-123-def instead.",
    `always send token: "9f8e7d6c"`,
    `No, use ${MIXED.slice(5, 45)} for the header.`,
    "Always call it with --password hunter22.",
    "Run login --password 'correct horse battery' first.",
    "No, use curl -u admin:swordfish for that.",
    "Call the mirror with -u admin:hunter22 instead.",
    "DB_PASS: swordfish is what staging takes",
    'Send {"password": "correct horse battery"} instead.',
    "sshpass -p swordfish ssh deploy@host is how we deploy",
  ])(promised("learning.B2", "%s holds a secret"), (text) => expect(findSecret(text)).toBeDefined())

  test.each([
    "Never log the password.",
    "The token is read from the environment, not from the file.",
    "No, use src/components/navigation/PrimaryNavigationBar.tsx instead.",
    "Pin the action to 8f4b7f84864484a7bf31766abe9204da3cbe65b3, never to a tag.",
    "Call it getUserByExternalIdentifierOrThrow2, not getUser.",
    "Use process.env.API_TOKEN instead.",
    "the api key is not needed here, use the session",
    "No, use https://docs.example.com/api/v2/users?limit=10 instead.",
    "Use --password only together with --user.",
    "Start it with docker run -u 1000:1000, never as root.",
    "Push new branches with git push -u origin main.",
    "Number first_pass: two in the report.",
    'Validate {"password": "string"} in the form.',
  ])(promised("learning.B2", "%s holds no secret"), (text) => expect(findSecret(text)).toBeUndefined())

  test(promised("learning.B2", "a secret is sought in the beginning of a text alone, however long it is"), () => {
    expect(findSecret(`${"a ".repeat(1_000)}${EXAMPLES["aws-access-key"]}`)).toBe("aws-access-key")
    expect(findSecret(`${"a ".repeat(50_000)}${EXAMPLES["aws-access-key"]}`)).toBeUndefined()
  })
})

const LONG = "aB3".repeat(12)
const keyOf = (kind: string, body: string): string => `-----BEGIN ${kind}-----\n${body}\n-----END ${kind}-----`

/** Rules by which more is found than is taken out: see the next table. */
const KEEPS_SURROUNDINGS = ["bearer-header", "private-key", "slack-webhook", "url-with-password"]

describe("redacting", () => {
  test.each([
    ...Object.entries(EXAMPLES).filter(([id]) => !KEEPS_SURROUNDINGS.includes(id)),
    ["a fine-grained token", `github_pat_${LONG}`],
    ["a web token", `eyJhbGciOiJIUzI1NiJ9.${LONG}.${LONG}`],
    ["an encrypted private key", keyOf("RSA PRIVATE KEY", `DEK-Info: AES-128-CBC,00\n\n${LONG}`)],
    ["another program's private key", keyOf("PGP PRIVATE KEY BLOCK", `\n${LONG}`)],
    ["an access token of a cloud", `ya29.${LONG}`],
    ["a mailer's key", `SG.${LONG}.${LONG}`],
    ["a webhook's secret", `whsec_${LONG}`],
    ["half a private key", `-----BEGIN PRIVATE KEY-----\n${LONG}`],
  ])(promised("pass-over.E3", "redacting takes out %s, and nothing around it"), (_what, secret) => {
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
    ["login --password 'correct horse' --user me", `login --password '${REDACTED}' --user me`],
    ["curl -s -u admin:swordfish https://x.example/a", `curl -s -u admin:${REDACTED} https://x.example/a`],
    ['curl --user "admin:sword fish" https://x.example', `curl --user "admin:${REDACTED}" https://x.example`],
    ["mirror -u admin:hunter22 now", `mirror -u admin:${REDACTED} now`],
    ["sshpass -p swordfish ssh root@host", `sshpass -p ${REDACTED} ssh root@host`],
    ["sshpass -v -p 'sword fish' ssh root@host", `sshpass -v -p ${REDACTED} ssh root@host`],
    ["mysql -h db -u root -pswordfish app", `mysql -h db -u root -p${REDACTED} app`],
    ["mysqldump -p'sword fish' app > a.sql", `mysqldump -p${REDACTED} app > a.sql`],
    ["DB_PASS: swordfish", `DB_PASS: ${REDACTED}`],
    ["SMTP_PWD=swordfish ./send", `SMTP_PWD=${REDACTED} ./send`],
    ["https://a.example/c?sv=1&sig=aB3%2BdE6gH9jK2mN5%3D&se=2", `https://a.example/c?sv=1&sig=${REDACTED}&se=2`],
    [
      `https://api.telegram.org/bot123456789:AA${MIXED.slice(0, 33)}/getMe`,
      `https://api.telegram.org/bot${REDACTED}/getMe`,
    ],
    ['curl -H "Cookie: session=s3ss; theme=dark" x', `curl -H "Cookie: ${REDACTED}" x`],
    ["curl --cookie session=abcd x", `curl --cookie ${REDACTED} x`],
    [`https://${HEX.slice(0, 32)}@o1.ingest.sentry.io/2`, `https://${REDACTED}@o1.ingest.sentry.io/2`],
    [`https://${HEX.slice(0, 32)}:${HEX.slice(0, 32)}@sentry.io/2`, `https://${REDACTED}:${REDACTED}@sentry.io/2`],
  ])(promised("pass-over.E3", "%j becomes %j when it is redacted"), (text, expected) =>
    expect(redact(text)).toBe(expected),
  )

  test.each([
    "Review the token parser in src/token.ts",
    "the password field is empty: fix it",
    "see https://example.com:8080/a@b",
    "skip sk-8 and sk-learn-extra",
    "commit 3f2a9c01d4e5b6a7988776655443322110ffeedd",
    "secretary: Alice",
    "use --token only with --verbose",
    "ls -u a:b",
    "docker run -u 1000:1000 -v a:/b node:20",
    "docker run --user node:node node:20",
    'docker run -u "$(id -u):$(id -g)" node:20',
    "git push -u origin main:v2",
    "git diff -u main:src/a1.ts dev:src/a1.ts",
    'curl -u "$NAME:$PASSWORD" https://x.example',
    "sshpass -p",
    'sshpass -p "$PW" ssh root@host',
    "mysql -u root -p",
    "mysql -u root -p app",
    "docker run --name mysql -p3306:3306 -p 33060:33060 mysql:8",
    "mysql -e 'select 1' && mkdir -pv out",
    "tar -xpf a.tar -p",
    "mkdir -p a/b",
    "PASS: test/a.test.ts, compass: north-east",
    "first_pass = compute(values)",
    "OLD_PWD=/work/project1",
    "the parameter sig= is missing",
    "Cookie: the banner hides the button",
    "sk-learn-extra, gsk_short and xai-models",
    "https://example.com/bot123:AAx",
  ])(promised("pass-over.E3", "redacting leaves %j as it is"), (text) => expect(redact(text)).toBe(text))

  test(
    promised("pass-over.E3", "redacting changes nothing the second time, and ends on a megabyte of anything"),
    () => {
      const begins = ["sk-", "token=", "://u:", "@", " ", "eyJ", ".", "-----BEGIN ", "PRIVATE KEY-----", "é"]
      const piece = fc.constantFrom(...begins, LONG)
      forAll(100, [fc.array(piece)], (pieces) => {
        const once = redact(pieces.join(""))
        expect(redact(once)).toBe(once)
      })
    },
  )
})

describe("the time that seeking takes", () => {
  const parts = [
    "a-",
    "a_",
    "aB3-",
    "-----BEGIN A PRIVATE KEY-----",
    "eyJ",
    "-eyJaaaaaaaa",
    "x://",
    "password",
    "password=",
  ]
  const more = [
    "sk-",
    "bearer ",
    "password=${",
    "-u ",
    "curl ",
    "curl -u a",
    "mysql -p",
    "Cookie: a=",
    "a_PASS",
    '"secret": "',
    "--",
  ]

  /** Processor time, which a busy machine does not stretch; the least of some tries, since the first ones compile. */
  const shortest = (act: () => unknown): number =>
    Math.min(
      ...Array.from({ length: 3 }, () => {
        const before = process.cpuUsage()
        act()
        const { user, system } = process.cpuUsage(before)
        return (user + system) / 1_000
      }),
    )
  /** Below it, a time is mostly chance. */
  const NOISE_MS = 60

  test.each([...parts, ...more])(
    promised(["learning.B2", "pass-over.E3"], "the time that seeking takes grows with the length of a text of %j"),
    (part) => {
      const textOf = (length: number): string => part.repeat(length / part.length)
      for (const seek of [redact, (text: string) => findSecret(text, text.length)]) {
        const [small, large] = [8_000, 80_000].map((length) => {
          const text = textOf(length)
          return shortest(() => seek(text))
        })
        // Ten times as much where it is linear, a hundred times where it is not.
        expect(large).toBeLessThan(Math.max((small ?? 0) * 40, NOISE_MS))
      }
    },
  )
})
