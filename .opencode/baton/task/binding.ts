import type { ZodType } from "zod"
import type { Zod } from "../host/schema.ts"
import { ROLES, type Role } from "./role.ts"

/** How a session came to its task. */
export type BindingOrigin = "message" | "parent" | "history"

/** A session's task identity: what stays when its context goes. */
export type TaskBinding = {
  version: 1
  sessionID: string
  taskID: string
  role: Role
  /** The user's text states the role, and with it asks for the role's protocol. */
  hasRoleHeading: boolean
  /** The user's message that set the work, verbatim; for a child session its own first message. */
  brief: string
  origin: BindingOrigin
  /** ISO 8601, UTC. */
  boundAt: string
}

/** A brief is kept verbatim up to this many characters: four times what a prompt ever shows of it. */
export const STORED_BRIEF_CHARACTERS = 24_000

export const taskBindingSchema = (z: Zod): ZodType<TaskBinding> =>
  z.object({
    version: z.literal(1),
    sessionID: z.string(),
    taskID: z.string(),
    role: z.enum(ROLES),
    // Baton 0.1.0 gave every task the protocol.
    hasRoleHeading: z.boolean().default(true),
    brief: z.string(),
    origin: z.enum(["message", "parent", "history"]),
    boundAt: z.string(),
  })
