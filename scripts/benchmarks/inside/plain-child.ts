import type { Plugin } from "@opencode-ai/plugin"

/**
 * The least that a tool does to have another agent work: a child session, one prompt, its last words. The child has a tool to
 * call as well, so that both ways ask the model as often.
 */
export const PlainChild: Plugin = async ({ client }) => ({
  tool: {
    plain_child: {
      description: "Has the agent general work in a child session",
      args: {},
      execute: async (_args, { sessionID }) => {
        const created = await client.session.create({ body: { parentID: sessionID, title: "plain" } })
        const id = created.data?.id ?? ""
        const parts = [{ type: "text" as const, text: "PLAIN-WORK" }]
        const answer = await client.session.prompt({ path: { id }, body: { agent: "general", parts } })
        return answer.data?.parts.find((part) => part.type === "text")?.id ?? ""
      },
    },
    plain_note: { description: "Notes something", args: {}, execute: async () => "noted" },
  },
})
