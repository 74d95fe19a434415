/**
 * prog's label on a task that Baton made of a conversation's first message. `ready` and `claim --next` of the embedded ledger
 * leave such a task out until `/task queue`, `prog start` or `prog unlabel` takes the label off (docs/tasks.md).
 */
export const CONVERSATION_LABEL = "conversation"
