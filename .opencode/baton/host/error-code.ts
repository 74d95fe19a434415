/** The system's code of a failed file operation, such as ENOENT; undefined for any other error. */
export const errorCode = (error: unknown): string | undefined =>
  error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined

/** The file, or a folder above it, is not there. */
export const isAbsent = (error: unknown): boolean => ["ENOENT", "ENOTDIR"].includes(errorCode(error) ?? "")
