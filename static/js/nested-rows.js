/**
 * The rows nested in the blocks of calls (`.inner`), which are thousands once a nested agent has worked for hours: a line
 * in place of the oldest. Used by `transcript-rows`.
 */
const MAX_NESTED = 300; // rows of one call that stay when its oldest are unloaded
const BATCH = 100; // rows that are unloaded at once: the line in their place is replaced, and would lose the focus

/** Remove the oldest rows nested in a call, if they are too many, with a line in their place. Returns what was removed. @param {Element} inner */
export const unloadNested = (inner) => {
  if (inner.childElementCount < MAX_NESTED + BATCH) return [];
  const removed = [...inner.children].slice(0, -MAX_NESTED);
  const seqs = removed.flatMap((row) => [row, ...row.querySelectorAll(".inner > [data-seq]")]).flatMap(seqsOf);
  const time = removed.findLast((row) => row.dataset.seq).querySelector(":scope > time");
  for (const row of removed) row.remove();
  inner.prepend(notice({ from: Math.min(...seqs), to: Math.max(...seqs), within: inner.parentElement.dataset.group, time }));
  return removed;
};

/** Whether a row is among those that a line in this call stands for. @param {Element} inner @param {Element} row */
export const isUnloaded = (inner, row) => {
  const seq = Number(row.dataset.seq);
  if (seq > Number(inner.lastElementChild?.dataset.seq)) return false; // the usual case
  return [...inner.children].some((other) => isNotice(other) && Number(other.dataset.from) <= seq && seq <= Number(other.dataset.seq));
};

const isNotice = (row) => row.classList.contains("unloaded");
const seqsOf = ({ dataset: { seq, from } }) => [seq, from].filter(Boolean).map(Number);

/** The line in place of unloaded rows. It has the seq and the day of the newest of them. */
const notice = ({ from, to, within, time }) => {
  const line = document.createElement("div");
  line.className = "unloaded";
  line.setAttribute("role", "note");
  Object.assign(line.dataset, { seq: to, from, within });
  const link = Object.assign(document.createElement("a"), { textContent: `Open at event ${to}` });
  link.setAttribute("href", `?event=${to}#e${to}`);
  line.append("Earlier events within the call are not shown here. ", link);
  if (time) line.append(Object.assign(time.cloneNode(true), { hidden: true }));
  return line;
};
