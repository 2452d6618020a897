/** The drawn rows of the list: what changes in place, what waits to move, what comes new. Called by `<conversation-list>`. */
import { drawTimes } from "./clock.js";
import { render } from "./html.js";
import { morph } from "./morph.js";
import { addBox } from "./pick-box.js";
import { serverNow } from "./server-time.js";
import { Unread } from "./unread.js";

const MAX_ROWS = 200; // rows kept; older ones are a page away
const GROUPS = ["attention", "live", "quiet"];
const LIVE_MS = 300_000; // after its last event a conversation is in the group Live
const ACTIVE_MS = 10_000; // after the last change a row still shows as active

export class ConversationRows {
  #root;
  #unread = new Unread();
  #new = new Map(); // key → row that is not in the page yet
  #activeUntil = new Map(); // key → ms of the page's clock

  /** @param {HTMLElement} root  holds the section of rows and the links to other pages */
  constructor(root) {
    this.#root = root;
    for (const row of this.#rows) this.#unread.learn(addBox(row));
  }

  /** How many rows would move or appear at `settle`. */
  get waiting() {
    let last;
    let count = this.#new.size;
    for (const row of this.#rows) {
      if (last && this.#order(last, row) > 0) count += 1;
      else last = row;
    }
    return count;
  }

  /**
   * Draw changed rows: known ones where they stand, unknown ones at the next `settle` if the list `takesNew`.
   * @param {{key: string, cursor: string, html: string}[]} changes
   * @param {{takesNew: boolean, isLive: boolean}} how  `isLive`: it happens now
   * @returns {boolean} whether a filtered list may be another: some unknown ones were not taken, or a known one is in another state
   */
  take(changes, { takesNew, isLive }) {
    const known = new Map(this.#rows.map((row) => [row.dataset.key, row]));
    const readAt = Number(this.#section.dataset.readAt);
    let isMissing = false;
    for (const { key, cursor, html } of changes) {
      if (isLive) this.#activeUntil.set(key, performance.now() + ACTIVE_MS);
      const old = known.get(key);
      if (!old && !takesNew) {
        isMissing ||= parseInt(cursor, 10) > readAt;
        continue;
      }
      const row = this.#draw(render(html).querySelector("[data-key]"));
      isMissing ||= old && filed(old) !== filed(row);
      if (old) morph(old, row);
      else this.#new.set(key, row);
    }
    this.#askSeen([...this.#new.keys()]);
    return isMissing;
  }

  /** Put every row where it belongs: those that need a person, the longest waiting first; the others newest first. */
  settle() {
    const section = this.#section;
    const rows = [...this.#rows, ...this.#new.values()].sort(this.#order);
    this.#new.clear();
    if (!rows.length) return;
    const hasOlder = this.#older !== null;
    const needed = this.#isGrouped ? rows.filter(needsPerson).length : 0;
    const kept = rows.slice(0, hasOlder ? Math.max(this.#rows.length, needed + 1) : MAX_ROWS);
    const items = this.#isGrouped ? this.#withHeadings(kept) : kept;
    items.forEach((item, n) => section.children[n] === item || section.insertBefore(item, section.children[n] ?? null));
    for (const rest of [...section.children].slice(items.length)) rest.remove();
    const oldest = kept.filter((row) => !this.#isGrouped || !needsPerson(row)).sort(newestFirst).at(-1);
    if (hasOlder && oldest) this.#older.search = withParameter(this.#older.search, "before", oldest.dataset.cursor);
  }

  /**
   * Take the whole list as the server drew it. Rows that changed while it was drawn and fetched stay as they are here.
   * @param {DocumentFragment} drawn
   * @param {{takesNew: boolean}} how
   */
  replace(drawn, { takesNew }) {
    const here = new Map([...this.#rows, ...this.#new.values()].map((row) => [row.dataset.key, row]));
    this.#new.clear();
    this.#root.replaceChildren(drawn);
    const newest = Math.max(0, ...this.#rows.map((row) => place(row)[0]));
    for (const row of this.#rows) {
      const old = here.get(row.dataset.key);
      here.delete(row.dataset.key);
      this.#unread.learn(row);
      if (old && place(old)[0] > place(row)[0]) row.replaceWith(old);
      else this.#draw(row);
    }
    for (const [key, row] of here) if (takesNew && place(row)[0] > newest) this.#new.set(key, row);
  }

  /** Ask again what was seen: the person may have read elsewhere. */
  async learnSeen() {
    await this.#unread.ask(this.#rows.map((row) => row.dataset.key));
    for (const row of this.#rows) this.#unread.draw(row);
  }

  /** Let rows rest that have been quiet for a while. */
  calm() {
    for (const [key, until] of this.#activeUntil) if (until < performance.now()) this.#activeUntil.delete(key);
    for (const row of this.#rows) this.#drawActivity(row);
  }

  #order = (one, other) => {
    if (!this.#isGrouped) return newestFirst(one, other);
    const [group, otherGroup] = [groupOf(one), groupOf(other)];
    if (group !== otherGroup) return GROUPS.indexOf(group) - GROUPS.indexOf(otherGroup);
    return group === "attention" ? one.dataset.since - other.dataset.since : newestFirst(one, other);
  };

  /** Rows under the headings of their groups; a heading without rows is hidden. */
  #withHeadings(rows) {
    return GROUPS.flatMap((group) => {
      const heading = this.#section.querySelector(`[data-group="${group}"]`);
      const members = rows.filter((row) => groupOf(row) === group);
      heading.hidden = !members.length;
      heading.querySelector("[data-number]").textContent = members.length;
      const figure = this.#root.querySelector(`[data-figure="${group}"]`);
      if (figure) figure.textContent = members.length;
      return [heading, ...members];
    });
  }

  get #isGrouped() { return "grouped" in this.#section.dataset && this.#section.querySelector("[data-group]") !== null; }
  get #section() { return this.#root.querySelector(".fleet"); }
  get #older() { return this.#root.querySelector("[data-older]"); }
  get #rows() { return [...this.#root.querySelectorAll(".fleet > [data-key]")]; }

  #draw(row) {
    this.#unread.draw(row);
    this.#drawActivity(row);
    drawTimes(row);
    return addBox(row);
  }

  #drawActivity(row) {
    row.toggleAttribute("data-active", this.#activeUntil.has(row.dataset.key));
  }

  async #askSeen(keys) {
    const unknown = keys.filter((key) => !this.#unread.knows(key));
    if (!unknown.length) return;
    await this.#unread.ask(unknown);
    for (const row of [...this.#rows, ...this.#new.values()]) this.#unread.draw(row);
  }
}

/** What the filter by state goes by, as it is drawn. */
const filed = (row) => [...row.querySelectorAll(".state, .handler")].map((one) => one.dataset.state ?? one.textContent).join();

const needsPerson = (row) => "since" in row.dataset;

/** The group of a row, as `ConversationRow.group` has it. */
function groupOf(row) {
  if (needsPerson(row)) return "attention";
  return "live" in row.dataset || place(row)[0] / 1000 > serverNow() - LIVE_MS ? "live" : "quiet";
}

const place = (row) => row.dataset.cursor.split(".").map(Number);

function newestFirst(one, other) {
  const [at, id] = place(one);
  const [otherAt, otherId] = place(other);
  return otherAt - at || otherId - id;
}

function withParameter(search, name, value) {
  const query = new URLSearchParams(search);
  query.set(name, value);
  return `?${query}`;
}
