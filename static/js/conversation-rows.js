/**
 * The rows of the conversation list: which are updated in place, which wait to be moved or inserted, and their order. Used
 * by `<conversation-list>`.
 */
import { drawTimes } from "./clock.js";
import { render } from "./html.js";
import { morph } from "./morph.js";
import { serverNow } from "./server-time.js";
import { Unread } from "./unread.js";

const MAX_ROWS = 200; // in the page; older ones are a page away
const GROUPS = ["attention", "live", "quiet"];
const LIVE_MS = 300_000; // after its last event a conversation stays in the group Live
const ACTIVE_MS = 10_000; // after its last change a row is shown as active

export class ConversationRows {
  #root;
  #unread = new Unread();
  #pending = new Map(); // key → row that is not in the page yet
  #activeUntil = new Map(); // key → ms of `performance.now()`

  /** @param {HTMLElement} root  contains the section of rows and the links to other pages */
  constructor(root) {
    this.#root = root;
    for (const row of this.#rows) this.#unread.learn(addBox(row));
  }

  /** How many rows `reorder` would move or insert; rows of the next page, which a snapshot contains as well, are none. */
  get pendingMoves() {
    let last;
    let count = this.#sorted().filter((row) => this.#pending.has(row.dataset.key)).length;
    for (const row of this.#rows) {
      if (last && this.#compare(last, row) > 0) count += 1;
      else last = row;
    }
    return count;
  }

  /**
   * Render changed rows: those in the page in place; new ones, if the list accepts them, are inserted by `reorder`.
   * @param {{key: string, cursor: string, html: string}[]} changes
   * @param {{acceptsNew: boolean, isSnapshot: boolean}} options  `isSnapshot`: the rows as they are, not changes that happen now
   * @returns {boolean} whether a filtered list may be outdated: a new row was not accepted, or the state of one in the page changed
   */
  update(changes, { acceptsNew, isSnapshot }) {
    const rows = new Map(this.#rows.map((row) => [row.dataset.key, row]));
    const readAt = Number(this.#section.dataset.readAt);
    let mayBeOutdated = false;
    for (const { key, cursor, html } of changes) {
      if (!isSnapshot) this.#activeUntil.set(key, performance.now() + ACTIVE_MS);
      const existing = rows.get(key);
      if (!existing && !acceptsNew) {
        mayBeOutdated ||= parseInt(cursor, 10) > readAt;
        continue;
      }
      const row = this.#decorate(render(html).querySelector("[data-key]"));
      mayBeOutdated ||= existing && stateOf(existing) !== stateOf(row);
      if (existing) morph(existing, row);
      else this.#pending.set(key, row);
    }
    this.#dropSurplus();
    this.#fetchSeen([...this.#pending.keys()]);
    return mayBeOutdated;
  }

  /** Insert the pending rows and sort all: first those that need a person, longest waiting first; the others newest first. */
  reorder() {
    const section = this.#section;
    const shown = this.#sorted();
    this.#pending.clear();
    if (!shown.length) return;
    const items = this.#isGrouped ? this.#withHeadings(shown) : shown;
    items.forEach((item, n) => section.children[n] === item || section.insertBefore(item, section.children[n] ?? null));
    for (const surplus of [...section.children].slice(items.length)) surplus.remove();
    const oldest = shown.filter((row) => !this.#isGrouped || !needsPerson(row)).sort(newestFirst).at(-1);
    if (this.#olderLink && oldest) this.#olderLink.search = withParameter(this.#olderLink.search, "before", oldest.dataset.cursor);
  }

  /**
   * Replace the whole list by the server's. Rows that have changed since the server rendered it keep their newer version.
   * @param {DocumentFragment} list
   * @param {{acceptsNew: boolean}} options
   */
  replace(list, { acceptsNew }) {
    const previous = new Map([...this.#rows, ...this.#pending.values()].map((row) => [row.dataset.key, row]));
    this.#pending.clear();
    this.#root.replaceChildren(list);
    const newest = Math.max(0, ...this.#rows.map((row) => cursorOf(row)[0]));
    for (const row of this.#rows) {
      const previousRow = previous.get(row.dataset.key);
      previous.delete(row.dataset.key);
      this.#unread.learn(row);
      if (previousRow && cursorOf(previousRow)[0] > cursorOf(row)[0]) row.replaceWith(previousRow);
      else this.#decorate(row);
    }
    for (const [key, row] of previous) if (acceptsNew && cursorOf(row)[0] > newest) this.#pending.set(key, row);
  }

  /** Fetch the read markers again: the person may have read elsewhere. */
  async refreshSeen() {
    await this.#unread.ask(this.#rows.map((row) => row.dataset.key));
    for (const row of this.#rows) this.#unread.draw(row);
  }

  /** Stop showing rows as active that have not changed for a while. */
  expireActivity() {
    for (const [key, until] of this.#activeUntil) if (until < performance.now()) this.#activeUntil.delete(key);
    for (const row of this.#rows) this.#drawActivity(row);
  }

  /** Drop pending rows that `reorder` would leave out: while the list is being read, they may wait for hours. */
  #dropSurplus() {
    if (this.#pending.size <= MAX_ROWS) return;
    for (const { dataset } of [...this.#pending.values()].sort(this.#compare).slice(MAX_ROWS)) this.#pending.delete(dataset.key);
  }

  #compare = (row, other) => {
    if (!this.#isGrouped) return newestFirst(row, other);
    const [group, otherGroup] = [groupOf(row), groupOf(other)];
    if (group !== otherGroup) return GROUPS.indexOf(group) - GROUPS.indexOf(otherGroup);
    return group === "attention" ? row.dataset.since - other.dataset.since : newestFirst(row, other);
  };

  /** Returns the rows of this page with the pending ones, in their order, without those that belong to the next page. */
  #sorted() {
    const rows = [...this.#rows, ...this.#pending.values()].sort(this.#compare);
    const needingPerson = this.#isGrouped ? rows.filter(needsPerson).length : 0;
    return rows.slice(0, this.#olderLink ? Math.max(this.#rows.length, needingPerson + 1) : MAX_ROWS);
  }

  /** Returns the rows below the headings of their groups. Hides a heading without rows, and updates the counts. */
  #withHeadings(rows) {
    return GROUPS.flatMap((group) => {
      const heading = this.#section.querySelector(`[data-group="${group}"]`);
      const members = rows.filter((row) => groupOf(row) === group);
      heading.hidden = !members.length;
      heading.querySelector("[data-number]").textContent = members.length;
      const figure = this.#root.querySelector(`[data-figure="${group}"]`);
      if (figure) figure.textContent = `${members.length + Number(figure.dataset.beyond)}${figure.dataset.plus}`;
      return [heading, ...members];
    });
  }

  get #isGrouped() { return "grouped" in this.#section.dataset && this.#section.querySelector("[data-group]") !== null; }
  get #section() { return this.#root.querySelector(".fleet"); }
  get #olderLink() { return this.#root.querySelector("[data-older]"); }
  get #rows() { return [...this.#root.querySelectorAll(".fleet > [data-key]")]; }

  /** Add to a row what the server does not render for each person. */
  #decorate(row) {
    this.#unread.draw(row);
    this.#drawActivity(row);
    drawTimes(row);
    return addBox(row);
  }

  #drawActivity(row) {
    row.toggleAttribute("data-active", this.#activeUntil.has(row.dataset.key) && !("history" in row.dataset));
  }

  async #fetchSeen(keys) {
    const unknown = new Set(keys.filter((key) => !this.#unread.knows(key)));
    if (!unknown.size) return;
    await this.#unread.ask([...unknown]);
    for (const row of [...this.#rows, ...this.#pending.values()]) if (unknown.has(row.dataset.key)) this.#unread.draw(row);
  }
}

/** Returns what the filter by state depends on, as the row shows it. */
const stateOf = (row) => [...row.querySelectorAll(".state, .handler")].map((element) => element.dataset.state ?? element.textContent).join();

const needsPerson = (row) => "since" in row.dataset;

/** Returns the group of a row, by the same rule as `ConversationRow.group` on the server. */
function groupOf(row) {
  if (needsPerson(row)) return "attention";
  const isRecent = !("history" in row.dataset) && cursorOf(row)[0] / 1000 > serverNow() - LIVE_MS;
  return isRecent || "live" in row.dataset ? "live" : "quiet";
}

/** Returns the time of the conversation's last event, in µs, and its id. */
const cursorOf = (row) => row.dataset.cursor.split(".").map(Number);

function newestFirst(row, other) {
  const [time, id] = cursorOf(row);
  const [otherTime, otherId] = cursorOf(other);
  return otherTime - time || otherId - id;
}

function withParameter(search, name, value) {
  const query = new URLSearchParams(search);
  query.set(name, value);
  return `?${query}`;
}

/** Add to a row the checkbox that selects it for `bulk-actions`, for people with the permission. Returns the row. */
function addBox(row) {
  if (row.querySelector(".pick") || !document.body.dataset.may.split(" ").includes("control")) return row;
  const checkbox = Object.assign(document.createElement("input"), { type: "checkbox", name: "conversation" });
  checkbox.setAttribute("form", "bulk");
  checkbox.setAttribute("aria-label", `Select ${row.querySelector(":is(h2, h3) > a").textContent}`);
  const label = Object.assign(document.createElement("label"), { className: "pick" });
  label.append(checkbox);
  row.prepend(label);
  return row;
}
