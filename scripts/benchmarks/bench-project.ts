import { mkdirSync, renameSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { OpenCodeBinary } from "../../test/support/opencode-binary.ts"
import { type RunOptions, type RunResult, runOpenCode } from "../../test/support/opencode-run.ts"
import { startServer, type TestServer } from "../../test/support/opencode-server.ts"
import { type Script, type ScriptedModel, startScriptedModel } from "../../test/support/scripted-model.ts"
import { createTestProject, type ProjectOptions, type TestProject } from "../../test/support/test-project.ts"

export type BenchProject = {
  binary: OpenCodeBinary
  model: ScriptedModel
  project: TestProject
  /** `opencode run MESSAGE`. @throws when it exits with anything but 0 */
  run: (message: string, options?: Omit<RunOptions, "binary" | "project">) => Promise<RunResult>
}

/** Opens a project with a scripted model, hands it to `use`, and removes both whatever happens. */
export const withBenchProject = async <T>(
  binary: OpenCodeBinary,
  script: Script,
  options: Partial<ProjectOptions>,
  use: (opened: BenchProject) => Promise<T>,
): Promise<T> => {
  const model = await startScriptedModel(script)
  const project = createTestProject({ binary, modelURL: model.url, ...options })
  try {
    return await use({
      binary,
      model,
      project,
      run: async (message, extra = {}) => {
        const result = await runOpenCode(message, { binary, project, ...extra })
        if (result.exitCode === 0) return result
        throw new Error(`opencode ${binary.version} run exited with ${result.exitCode}: ${result.stderr.slice(-500)}`)
      },
    })
  } finally {
    await model.close()
    await project.remove()
  }
}

/** Hands `use` an `opencode serve` in the project with `environment` added to its own, and stops it whatever happens. */
export const withServer = async <T>(
  { binary, project }: BenchProject,
  environment: Record<string, string>,
  use: (server: TestServer) => Promise<T>,
): Promise<T> => {
  const server = await startServer(binary, { ...project, environment: { ...project.environment, ...environment } })
  try {
    return await use(server)
  } finally {
    await server.stop()
  }
}

/**
 * Puts a plugin of the benchmarks into the project; the bundle's own plugins, where it has them, are moved aside.
 *
 * @param file name of a module in `inside/`, all of whose exports are plugins
 * @returns the folder of the bundle's plugins; their imports of `../baton` still hold there
 */
export const usePlugin = ({ project }: Pick<BenchProject, "project">, file: string): string => {
  const openCode = join(project.directory, ".opencode")
  const aside = join(openCode, "bundle-plugins")
  renameSync(join(openCode, "plugins"), aside)
  mkdirSync(join(openCode, "plugins"))
  const module = join(import.meta.dirname, "inside", file)
  writeFileSync(join(openCode, "plugins", "bench.ts"), `export * from ${JSON.stringify(module)}\n`)
  return aside
}
