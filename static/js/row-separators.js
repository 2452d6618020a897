/**
 * Adapts rows to the row before each: a line between two days, no repeated name of the same sender, and the event numbers
 * of an output's streamed parts. `dashboard/pages/row_separators.py` does the same on the server.
 */
import { stretchesOf } from "./visible-rows.js";

/** Elements of the page. Those that left it are forgotten. */
class ElementsOfPage {
  #elements = new Set();

  add(element) {
    if (!this.#elements.has(element) && this.#elements.size % 256 === 255) this.#forgetOthers();
    this.#elements.add(element);
  }

  get all() {
    this.#forgetOthers();
    return [...this.#elements];
  }

  #forgetOthers() {
    for (const element of this.#elements) if (!element.isConnected) this.#elements.delete(element);
  }
}

const rowsOfSeveral = new ElementsOfPage(); // rows of several events, the last of which may be far from the others
const nestedLists = new ElementsOfPage(); // the rows within calls
const dayFormat = new Intl.DateTimeFormat("en-GB", { weekday: "long", day: "numeric", month: "long", year: "numeric" });

/**
 * Adapt rows to the rows before them.
 * @param {Element[]} rows in order
 * @param {Element | null} previous the row before the first of them
 */
export const separateRows = (rows, previous = null) => {
  let before = previous;
  for (const row of rows) register(row);
  for (const row of rows) {
    separate(row, before);
    before = row;
  }
};

/** Store where the numbers of a row's events are looked up; also those of the rows nested in it. */
const register = (row) => {
  if (row.dataset.last) rowsOfSeveral.add(row);
  const { lastElementChild: last } = row;
  if (!last?.matches(".inner")) return;
  nestedLists.add(last);
  for (const nested of last.children) register(nested);
};

const separate = (row, before) => {
  const date = dateOf(row);
  const isNewDay = date !== null && date !== (before ? dateOf(before) : null);
  row.toggleAttribute("data-follow", !isNewDay && isSameSender(row, before));
  const link = row.dataset.kind === "output" && row.querySelector(":scope > .seq"); // a lane's card has no such link
  if (link) showPartNumbers(link, row);
  const line = row.previousElementSibling?.matches(".day") ? row.previousElementSibling : null;
  if (!isNewDay) line?.remove();
  else if (!line) row.before(dayLine(date));
  else if (line.textContent !== date) line.textContent = date;
};

/** Show the range of an output's parts. They have no rows of their own, so the column would otherwise read as if events were missing. */
const showPartNumbers = (link, row) => {
  const [seq, first] = [Number(row.dataset.seq), lastDrawnBefore(row) + 1];
  if (first > 1 && first < seq) Object.assign(link, { title: `Event ${seq}; its parts are among events ${first} to ${seq - 1}` }).dataset.from = `${first}–`;
  else for (const name of ["title", "data-from"]) link.removeAttribute(name);
};

/** Returns the last seq before a row's own that another row shows; 0 if there is none on the page. */
const lastDrawnBefore = (row) => {
  const seq = Number(row.dataset.seq);
  let last = 0;
  for (const { dataset } of othersThan(row))
    for (const other of [Number(dataset.seq), Number(dataset.last ?? 0)]) if (other < seq && other > last) last = other;
  return last;
};

/** Returns the rows that may show the last seq before a row's own: the one before it in each list, which is in order, and those that show several. */
const othersThan = (row) => {
  const page = row.closest(".transcript");
  if (!page) return document.querySelectorAll("[data-seq]");
  const lists = [...stretchesOf(page), ...nestedLists.all];
  return [...lists.map((list) => rowBefore(row, list)).filter(Boolean), ...rowsOfSeveral.all];
};

/** Returns the last row of a list before a row, or null. */
const rowBefore = (row, list) => {
  const isBefore = (other) => Number(other.dataset.seq) < Number(row.dataset.seq);
  if (list !== row.parentElement && !isBefore(list.querySelector("[data-seq]") ?? row)) return null; // a later stretch
  let at = list === row.parentElement ? row.previousElementSibling : list.lastElementChild;
  while (at && !(at.hasAttribute("data-seq") && isBefore(at))) at = at.previousElementSibling;
  return at;
};

/** Whether two rows have the same sender and head, and the same level of detail, so that the first is visible whenever the second is. */
const isSameSender = (row, before) =>
  Boolean(before) && ["level", "sender"].every((name) => row.dataset[name] === before.dataset[name])
  && headOf(row) !== "" && headOf(row) === headOf(before);

const headOf = (row) => row.querySelector(":scope > .body > .head")?.textContent.trim() ?? "";

const dateOf = (row) => {
  const at = row.querySelector(":scope > time")?.dateTime;
  return at ? dayFormat.format(new Date(at)) : null;
};

const dayLine = (text) => {
  const line = document.createElement("div");
  line.className = "day";
  line.textContent = text;
  return line;
};
