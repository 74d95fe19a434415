import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { expect, onTestFinished, test } from "vitest"
import { promised } from "../../requirements.ts"
import { TASK } from "../../support/index.ts"
import { FULL_TOKENS, openTask2 } from "../../support/opencode/opencode-2.ts"
import { HAS_OPENCODE_2 } from "../../support/opencode/opencode-binary.ts"

const readAll = async (request: IncomingMessage): Promise<string> => {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString("utf8")
}

const CHECKPOINT = { id: "cmp_1", type: "compaction", encrypted_content: "sealed" }
const USAGE = { input_tokens: 500, output_tokens: 10, total_tokens: 510 }

/** A compaction as OpenAI's Responses API streams it. */
const COMPACTED = [
  { type: "response.created", response: { id: "resp_1", status: "in_progress", output: [] } },
  { type: "response.output_item.added", output_index: 0, item: CHECKPOINT },
  { type: "response.output_item.done", output_index: 0, item: CHECKPOINT },
  { type: "response.completed", response: { id: "resp_1", status: "completed", output: [CHECKPOINT], usage: USAGE } },
]

/** The provider: it compacts by itself, and passes all else on to the scripted model. */
const openProvider = async (modelURL: () => string) => {
  const compactions: string[] = []
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await readAll(request)
    if (body.includes('"compaction_trigger"') || request.url?.endsWith("/compact")) {
      compactions.push(body)
      response.writeHead(200, { "content-type": "text/event-stream" })
      for (const event of COMPACTED) response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
      response.end()
      return
    }
    const headers = { "content-type": "application/json", authorization: "Bearer none" }
    const answered = await fetch(`${modelURL()}${request.url}`, { method: "POST", headers, body })
    response.writeHead(answered.status, { "content-type": answered.headers.get("content-type") ?? "" })
    response.end(await answered.text())
  }
  const server = createServer((request, response) => {
    answer(request, response).catch(() => response.destroy())
  })
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening))
  onTestFinished(() => void server.close())
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, compactions }
}

if (HAS_OPENCODE_2)
  test(promised("v2.B10", "a provider's own compaction is left alone on 2.0.15, and the note follows it"), async () => {
    let modelURL = ""
    const provider = await openProvider(() => modelURL)
    const task = await openTask2(({ index }) =>
      index === 0 ? { text: "Half of it is done.", promptTokens: FULL_TOKENS } : { text: "Going on." },
    )
    modelURL = task.model.url
    const config = JSON.parse(task.project.read("opencode.json"))
    config.provider.scripted.npm = "@ai-sdk/openai"
    config.provider.scripted.options = { baseURL: provider.url, apiKey: "none", compaction: { type: "native" } }
    task.project.write("opencode.json", JSON.stringify(config))
    await task.runWell(task.message)
    await task.runWell("go on", "-c")
    expect(provider.compactions).toHaveLength(1)
    expect(task.model.received("compaction")).toEqual([])
    const { conversation = "" } = task.model.received("turn").at(-1) ?? {}
    expect(conversation).toContain("go on")
    expect(conversation.split("[Baton] ").at(-1)).toContain(TASK.definitionOfDone)
  })
