import type { Plugin } from "@opencode-ai/plugin"

/**
 * The minimal tool that delegates work: a child session, one prompt, its last message. The child has a tool to call too, so that
 * both ways make equally many requests.
 */
export const PlainChild: Plugin = async ({ client }) => {
  const child = (description: string, work: string) => ({
    description,
    args: {},
    execute: async (_args: object, { sessionID }: { sessionID: string }): Promise<string> => {
      const created = await client.session.create({ body: { parentID: sessionID, title: "plain" } })
      const parts = [{ type: "text" as const, text: work }]
      const path = { id: created.data?.id ?? "" }
      const answer = await client.session.prompt({ path, body: { agent: "general", parts } })
      return answer.data?.parts.find((part) => part.type === "text")?.id ?? ""
    },
  })
  return {
    tool: {
      plain_child: child("Has the agent general look at something in a child session", "PLAIN-LOOK"),
      plain_writer: child("Has the agent general write a file in a child session", "PLAIN-WRITE"),
      plain_note: { description: "Notes something", args: {}, execute: async () => "noted" },
    },
  }
}
