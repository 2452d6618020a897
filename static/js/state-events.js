/** Which events can change how a conversation stands: who works, waits and steers, and what was not answered yet. */

/** What goes on within a run does not change it; a type that is not known here may. */
const WITHIN_A_RUN = new Set(["token", "tool_step", "model.turn", "output", "log", "signal", "signal_send", "signal_recv"]);

/** @param {{kind: string}[]} events of a frame */
export const changeState = (events) => events.some(({ kind }) => !WITHIN_A_RUN.has(kind));
