/** Tells which events may change a conversation's state: who is working, waiting or in control, and what is unanswered. */

/** The event types with the trait `leaves_state` (`make check` compares them); any other, also an unknown one, may change the state. */
const LEAVES_STATE = new Set(["token", "tool_step", "model.turn", "output", "log", "signal", "signal_send", "signal_recv"]);

/** Whether any of the events may change the state. @param {{kind: string}[]} events  of a frame */
export const changeState = (events) => events.some(({ kind }) => !LEAVES_STATE.has(kind));
