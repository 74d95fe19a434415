/** Of the project's root; apart, since each start looks for it and nothing else is loaded then. */
export const POLICY_FILE = ".opencode/pass-over.json"
