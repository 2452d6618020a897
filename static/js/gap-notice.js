/** The red notice where events are missing. */

/** @param {{from: number, to: number, reason?: string}} gap */
export const gapNotice = ({ from, to, reason }) => {
  const notice = document.createElement("div");
  notice.className = "gap";
  notice.setAttribute("role", "note");
  notice.dataset.seq = from;
  const text = document.createElement("b");
  text.textContent = gapText({ from, to });
  notice.append(text, reason ? ` ${reason}` : "");
  return notice;
};

/** Returns "Events 224 to 229 are missing." */
export const gapText = ({ from, to }) =>
  from === to ? `Event ${from} is missing.` : `Events ${from} to ${to} are missing.`;
