/** The drawn rows of the list: what changes in place, what waits to move, what comes new. Called by `<conversation-list>`. */
import { drawTimes } from "./clock.js";
import { render } from "./html.js";
import { morph } from "./morph.js";
import { addBox } from "./pick-box.js";
import { Unread } from "./unread.js";

const MOST = 200; // rows kept; older ones are a page away
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
    let least = Infinity;
    let count = this.#new.size;
    for (const row of this.#rows) {
      const [at] = place(row);
      if (at > least) count += 1;
      least = Math.min(least, at);
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

  /** Put every row where it belongs: newest first. */
  settle() {
    const section = this.#section;
    const rows = [...this.#rows, ...this.#new.values()].sort(newestFirst);
    this.#new.clear();
    if (!rows.length) return;
    const hasOlder = this.#older !== null;
    const kept = rows.slice(0, hasOlder ? Math.max(this.#rows.length, 1) : MOST);
    kept.forEach((row, n) => section.children[n] === row || section.insertBefore(row, section.children[n] ?? null));
    for (const rest of [...section.children].slice(kept.length)) rest.remove();
    if (hasOlder) this.#older.search = withParameter(this.#older.search, "before", kept.at(-1).dataset.cursor);
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
    const newest = this.#rows.length ? place(this.#rows[0])[0] : 0;
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
