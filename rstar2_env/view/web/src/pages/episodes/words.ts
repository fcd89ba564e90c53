/* Words for values of the table of episodes. */

export const AFTER_ERROR: Record<string, string> = {
  ok: "the next call worked",
  failed: "the next call failed too",
  answered: "answered at once",
  ended: "ended without an answer",
};
