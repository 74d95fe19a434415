import type { Plugin, PluginInput } from "@opencode-ai/plugin"

type Client = PluginInput["client"]

/** @param work what the child is told; its last words are taken */
const runChild = async (client: Client, parentID: string, work: string): Promise<string> => {
  const created = await client.session.create({ body: { parentID, title: "plain" } })
  const id = created.data?.id ?? ""
  const parts = [{ type: "text" as const, text: work }]
  const answer = await client.session.prompt({ path: { id }, body: { agent: "general", parts } })
  return answer.data?.parts.find((part) => part.type === "text")?.id ?? ""
}

/**
 * The least that a tool does to have another agent work: a child session, one prompt, its last words. The child has a tool to
 * call as well, so that both ways ask the model as often.
 */
export const PlainChild: Plugin = async ({ client }) => ({
  tool: {
    plain_child: {
      description: "Has the agent general look at something in a child session",
      args: {},
      execute: (_args, { sessionID }) => runChild(client, sessionID, "PLAIN-LOOK"),
    },
    plain_writer: {
      description: "Has the agent general write a file in a child session",
      args: {},
      execute: (_args, { sessionID }) => runChild(client, sessionID, "PLAIN-WRITE"),
    },
    plain_note: { description: "Notes something", args: {}, execute: async () => "noted" },
  },
})
