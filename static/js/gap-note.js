/** The red words where events are missing. */

/** @param {{from: number, to: number, reason?: string}} gap */
export const gapNote = ({ from, to, reason }) => {
  const note = document.createElement("div");
  note.className = "gap";
  note.setAttribute("role", "note");
  note.dataset.seq = from;
  const what = document.createElement("b");
  what.textContent = gapWords({ from, to });
  note.append(what, reason ? ` ${reason}` : "");
  return note;
};

/** "Events 224 to 229 are missing." */
export const gapWords = ({ from, to }) =>
  from === to ? `Event ${from} is missing.` : `Events ${from} to ${to} are missing.`;
