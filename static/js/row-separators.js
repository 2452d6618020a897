/**
 * What a row looks like after the row before it: a line between two days, no second name for the same voice, and of a
 * text that was written in parts the numbers that these have.
 */

const day = new Intl.DateTimeFormat("en-GB", { weekday: "long", day: "numeric", month: "long", year: "numeric" });

/**
 * Set the joints of neighbouring rows.
 * @param {Element[]} rows in order
 * @param {Element | null} previous the row before the first of them
 */
export const separateRows = (rows, previous = null) => {
  let before = previous;
  for (const row of rows) {
    joinOne(row, before);
    before = row;
  }
};

const joinOne = (row, before) => {
  const date = dateOf(row);
  const isNewDay = date !== null && date !== (before ? dateOf(before) : null);
  row.toggleAttribute("data-follow", !isNewDay && isSameVoice(row, before));
  const link = row.dataset.kind === "output" && row.querySelector(":scope > .seq"); // a lane's card has none there
  if (link) numberParts(link, row);
  const line = row.previousElementSibling?.matches(".day") ? row.previousElementSibling : null;
  if (!isNewDay) line?.remove();
  else if (!line) row.before(dayLine(date));
  else if (line.textContent !== date) line.textContent = date;
};

/** The parts have no rows of their own: without their numbers the column would read as if events were missing. */
const numberParts = (link, row) => {
  const [seq, first] = [Number(row.dataset.seq), lastDrawnBefore(row) + 1];
  if (first > 1 && first < seq) Object.assign(link, { title: `Event ${seq}; its parts are among events ${first} to ${seq - 1}` }).dataset.from = `${first}–`;
  else for (const name of ["title", "data-from"]) link.removeAttribute(name);
};

/** The last event before a row's own that another row shows; 0 where none is on the page. */
const lastDrawnBefore = (row) => {
  const seq = Number(row.dataset.seq);
  let last = 0;
  for (const { dataset } of (row.closest(".transcript") ?? document).querySelectorAll("[data-seq]"))
    for (const other of [Number(dataset.seq), Number(dataset.last ?? 0)]) if (other < seq && other > last) last = other;
  return last;
};

/** The same head, at the same level of detail: the row before is seen whenever this one is. */
const isSameVoice = (row, before) =>
  Boolean(before) && row.dataset.level === before.dataset.level && headOf(row) !== "" && headOf(row) === headOf(before);

const headOf = (row) => row.querySelector(":scope > .body > .head")?.textContent.trim() ?? "";

const dateOf = (row) => {
  const at = row.querySelector(":scope > time")?.dateTime;
  return at ? day.format(new Date(at)) : null;
};

const dayLine = (text) => {
  const line = document.createElement("div");
  line.className = "day";
  line.textContent = text;
  return line;
};
