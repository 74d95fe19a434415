import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { onTestFinished } from "vitest"

/** Starts a proxy between OpenCode and a scripted model; it ends with the test. */
export const startProviderProxy = async () => {
  const proxy = {
    /** Request bodies as received, oldest first. */
    bodies: [] as string[],
    /** Base URL of the scripted model that receives the requests. */
    target: "",
    /** Changes the model's answer before OpenCode gets it; `isCut` closes the connection after it. */
    answer: (_body: string, text: string): { text: string; isCut?: boolean } => ({ text }),
  }
  const forward = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = (await request.toArray()).join("")
    proxy.bodies.push(body)
    const answer = await fetch(`${proxy.target}${request.url ?? ""}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body,
    })
    // On 1.2.15 a kept connection that ends in mid-stream is reopened without OpenCode's knowledge.
    response.writeHead(answer.status, { ...Object.fromEntries(answer.headers), connection: "close" })
    const { text, isCut } = proxy.answer(body, await answer.text())
    if (isCut) response.write(text, () => response.destroy())
    else response.end(text)
  }
  const server = createServer((request, response) => {
    forward(request, response).catch((error: unknown) => response.destroy(new Error("not forwarded", { cause: error })))
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  /** Base URL on loopback. */
  const url = `http://127.0.0.1:${port}`
  return Object.assign(proxy, { url })
}

export type ProviderProxy = Awaited<ReturnType<typeof startProviderProxy>>
