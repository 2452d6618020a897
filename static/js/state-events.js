/** Tells which events may change a conversation's state: who is working, waiting or in control, and what is unanswered. */

/** Types of events within a run, which do not change the state; unknown types may. */
const WITHIN_A_RUN = new Set(["token", "tool_step", "model.turn", "output", "log", "signal", "signal_send", "signal_recv"]);

/** Whether any of the events may change the state. @param {{kind: string}[]} events  of a frame */
export const changeState = (events) => events.some(({ kind }) => !WITHIN_A_RUN.has(kind));
