/** What scripts/demo hands over after it has checked the command line and found or installed the packages. */
export type DemoOptions = {
  /** The checkout that the demo belongs to. */
  repository: string
  /** The node_modules folder with OpenCode, the plugin package and the mock server. */
  packages: string
  /** The OpenCode that runs the agent. */
  opencode: string
  /** The OpenCode that acts as Bun for the ledger. */
  runtime: string
  /** PROVIDER/MODEL of the user's own, instead of the scripted model. */
  model?: string
  /** Absolute path of an empty or missing folder that keeps the project. */
  keep?: string
  withBaton: boolean
}

/** @param environment the DEMO_* variables that scripts/demo sets */
export const readDemoOptions = (environment: Record<string, string | undefined>): DemoOptions => {
  const required = (name: string): string => {
    const value = environment[name]
    if (!value) throw new Error(`expected ${name} to be set: start the demo with ./scripts/demo`)
    return value
  }
  return {
    repository: required("DEMO_REPOSITORY"),
    packages: required("DEMO_PACKAGES"),
    opencode: required("DEMO_OPENCODE"),
    runtime: required("DEMO_RUNTIME"),
    ...(environment.DEMO_MODEL ? { model: environment.DEMO_MODEL } : {}),
    ...(environment.DEMO_KEEP ? { keep: environment.DEMO_KEEP } : {}),
    withBaton: environment.DEMO_WITHOUT_BATON !== "1",
  }
}
