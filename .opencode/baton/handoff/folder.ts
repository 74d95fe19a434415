/** The folder of the handoffs in the state folder. */
export const HANDOFFS_FOLDER = "handoffs"
