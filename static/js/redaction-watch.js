/** Redactions: parts of the page may still show what was redacted. */
import { reloadRestored } from "./restored-page.js";
import { socket } from "./socket.js";

/** Whether one of the events is a redaction. @param {{kind: string}[]} events */
export const includesRedaction = (events) => events.some(({ kind }) => kind === "event.redacted");

/** Dispatch `record:redacted` on the document: every part of the page renders itself again. */
export const dispatchRedacted = () => document.dispatchEvent(new CustomEvent("record:redacted"));

const dispatchPresence = (people) => document.dispatchEvent(new CustomEvent("transcript:presence", { detail: { people } }));

/**
 * Watch for redactions while the conversation is not followed for anything else but who else is there (`transcript:presence`).
 * @param {{topic: string, after: string, epoch: string}} position  from which on events count
 * @param {() => void} listener
 * @returns {() => void} stops watching
 */
export const watchRedactions = ({ topic, after, epoch }, listener) => {
  const receive = ({ events }) => includesRedaction(events) && listener();
  return socket.subscribe(topic, { after: Number(after), epoch }, {
    events: receive,
    presence: ({ people }) => dispatchPresence(people),
    down: () => dispatchPresence([]),
    reset: reloadRestored,
  });
};
