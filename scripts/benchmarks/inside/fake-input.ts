import type { PluginInput } from "@opencode-ai/plugin"

/** What OpenCode hands a plugin, with a client that answers at once and with nothing. */
export const fakeInput = (directory: string): PluginInput => {
  const answer = async () => ({ data: undefined })
  const group = new Proxy({}, { get: () => answer })
  const client = new Proxy({}, { get: () => group })
  const project = { id: "bench", worktree: directory, time: { created: 0 } }
  // Only the parts the bundle uses; the real client needs a server.
  const input = { client, project, directory, worktree: directory, serverUrl: new URL("http://127.0.0.1"), $: Bun.$ }
  return input as unknown as PluginInput
}
