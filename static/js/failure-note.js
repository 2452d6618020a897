/**
 * Says beside a button why its action failed. If the server did not respond, the note leaves once the connection is back and
 * the page is up to date, since the page then shows what was done; a refusal of the server stays. Used by elements with actions.
 */
import { socket } from "./socket.js";

const SHOWN_MS = 6_000; // at least, for those who are still reading it

/** @type {Map<Element, {text: string, remove: () => void, isCurrent: boolean, isRead: boolean}>} by line; `isCurrent`: the page is up to date since */
const notes = new Map();

/**
 * @param {Element} line  in which the note is shown
 * @param {import("./fetch.js").RequestError} error
 * @param {{text?: string, remove?: () => void}} [options]
 */
export function noteFailure(line, error, { text = `Not done. ${error.sentence}`, remove = () => (line.textContent = "") } = {}) {
  line.textContent = text;
  if (!error.isUnreachable) return;
  const note = { text, remove, isCurrent: false, isRead: false };
  notes.set(line, note);
  setTimeout(() => ((note.isRead = true), removeOutdated()), SHOWN_MS);
}

/** Remove the outdated notes that were shown long enough. A line with another text by now is left as it is. */
function removeOutdated() {
  for (const [line, { text, remove, isCurrent, isRead }] of notes) {
    if (!isCurrent || !isRead) continue;
    notes.delete(line);
    if (line.textContent === text) remove();
  }
}

socket.addEventListener("current", () => {
  for (const note of notes.values()) note.isCurrent = true;
  removeOutdated();
});
