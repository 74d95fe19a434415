/** Of the scripted model on OpenCode 2, which keeps much of it free. */
export const CONTEXT_TOKENS = 100_000
/** Compacts at this many tokens less than the context. */
export const RESERVED_TOKENS = 20_000
/** Of an answer, after which OpenCode 2 compacts. */
export const FULL_TOKENS = CONTEXT_TOKENS - RESERVED_TOKENS + 5_000
