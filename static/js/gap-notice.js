/** The red words where events are missing. */

/** @param {{from: number, to: number, reason?: string}} gap */
export const gapNotice = ({ from, to, reason }) => {
  const note = document.createElement("div");
  note.className = "gap";
  note.setAttribute("role", "note");
  note.dataset.seq = from;
  const what = document.createElement("b");
  what.textContent = gapText({ from, to });
  note.append(what, reason ? ` ${reason}` : "");
  return note;
};

/** "Events 224 to 229 are missing." */
export const gapText = ({ from, to }) =>
  from === to ? `Event ${from} is missing.` : `Events ${from} to ${to} are missing.`;
