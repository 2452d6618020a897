/**
 * `<call-list>`: the list of tool calls, fetched again when the `fleet` topic reports a change. Rows are updated in place, but
 * new ones are added only while nobody points at the list, has the focus in it or has scrolled down; until then a pill counts
 * them.
 */
import "./utc-field.js";
import { drawTimes } from "./clock.js";
import { FilteredList } from "./filtered-list.js";
import { morph } from "./morph.js";
import { NewsPill, newRows } from "./news-pill.js";
import { openRow } from "./row-links.js";
import { socket } from "./socket.js";

const REFRESH_DELAY_MS = 700; // after a change
const RETRY_MS = 3_000; // after a failed fetch
const BEHIND_MS = 1_000; // after a list whose words were looked up before everything was searchable
const SLACK_US = 10_000_000;
const SCROLL_THRESHOLD = 120; // px; a page scrolled further counts as being read

class CallList extends HTMLElement {
  #stop;
  #unsubscribe;
  #isHovered = false;
  #calls = new FilteredList(this);
  #refreshTimer;
  #pill;
  #pendingList; // the latest list, until it replaces the one in the page

  connectedCallback() {
    this.#stop = new AbortController();
    const { signal } = this.#stop;
    if (this.dataset.address) history.replaceState(null, "", this.dataset.address); // of a form that was refused: no address to fetch from
    const listen = (target, type, listener) => target.addEventListener(type, listener, { signal });
    listen(this, "filter", () => this.#applyFilter());
    for (const type of ["pointerenter", "pointerleave"]) listen(this.#list, type, (event) => this.#hover(event));
    listen(this.#list, "click", openRow);
    listen(this.#list, "focusout", () => setTimeout(() => this.#showPending()));
    listen(window, "scroll", () => this.#showPending());
    listen(document, "visibilitychange", () => this.#refreshSoon());
    this.#pill = new NewsPill(this.querySelector("[data-changed]"), () => this.#scrollUp(), signal);
    this.#unsubscribe = socket.subscribe("fleet", {}, {
      rows: ({ rows, isSnapshot }) => (!isSnapshot || changedSinceDrawn(rows)) && this.#refreshSoon(),
      down: () => (this.#connectionLost.hidden = false),
      up: () => ((this.#connectionLost.hidden = true), this.#refreshSoon()),
      reset: () => location.reload(),
    });
    this.#refreshIfBehind(this.#list);
  }

  disconnectedCallback() {
    this.#unsubscribe();
    this.#stop.abort();
    clearTimeout(this.#refreshTimer);
  }

  get #list() { return this.querySelector("[data-list]"); }
  get #connectionLost() { return this.querySelector("[data-lost]"); }
  get #isBeingRead() { return this.#isHovered || this.#list.contains(document.activeElement) || scrollY > SCROLL_THRESHOLD; }
  get #isOlderPage() { return new URLSearchParams(location.search).has("before"); }

  #refreshSoon(delayMs = REFRESH_DELAY_MS) {
    if (this.#isOlderPage || document.hidden) return;
    this.#refreshTimer ??= setTimeout(() => ((this.#refreshTimer = undefined), this.#refresh()), delayMs);
  }

  #refreshIfBehind(list) {
    if (list.querySelector("[data-behind]")) this.#refreshSoon(BEHIND_MS);
  }

  async #refresh() {
    if (this.#calls.isApplying) return this.#refreshSoon();
    if (this.#calls.hasFailed) return this.#applyFilter(); // the rows in the page are not those of the filter
    const list = await this.#calls.fetchList(({ isTemporary }) => isTemporary && this.#refreshSoon(RETRY_MS));
    if (!list) return undefined;
    this.#refreshIfBehind(list);
    this.#pendingList = list;
    const newRowByKey = new Map(keyedRows(list));
    for (const [key, row] of keyedRows(this.#list)) if (newRowByKey.has(key)) morph(row, newRowByKey.get(key).cloneNode(true));
    const [figure, newFigure] = [this.#list, list].map((part) => part.querySelector("[data-figure]"));
    if (figure && newFigure) morph(figure, newFigure.cloneNode(true)); // updated even while the rows wait
    drawTimes(this.#list);
    return this.#showPending();
  }

  /** Replace the list by the pending one, or count its new rows while the list is being read. */
  #showPending() {
    const newCount = this.#pendingList ? this.#countNew() : 0;
    const isBeingRead = this.#isBeingRead;
    if (this.#pendingList && !isBeingRead) {
      this.#list.replaceChildren(this.#pendingList);
      this.#pendingList = undefined;
    }
    this.#pill.show(isBeingRead ? newCount : 0, newRows(newCount, "call", "calls"));
  }

  /** Returns how many rows of the pending list are new, not moved up from the next page. */
  #countNew() {
    const shownKeys = new Set(keyedRows(this.#list).map(([key]) => key));
    const keys = keyedRows(this.#pendingList).map(([key]) => key);
    const lastShown = keys.findLastIndex((key) => shownKeys.has(key));
    const hasNextPage = this.#list.querySelector("[rel=next]") !== null;
    return keys.filter((key, n) => !shownKeys.has(key) && (n < lastShown || lastShown < 0 || !hasNextPage)).length;
  }

  #hover({ type, pointerType }) {
    this.#isHovered = type === "pointerenter" && pointerType === "mouse";
    this.#showPending();
  }

  #scrollUp() {
    this.#isHovered = false;
    document.activeElement?.blur();
    scrollTo({ top: 0 });
    this.#showPending();
  }

  #applyFilter() {
    this.#pendingList = undefined;
    for (const field of this.querySelectorAll("[data-query]")) field.value = location.search.slice(1);
    return this.#calls.applyFilter((list) => (this.#refreshIfBehind(list), this.#list.replaceChildren(list)));
  }
}

/** Whether a conversation changed after the page was rendered: the clocks of two servers may differ by a few seconds. */
const changedSinceDrawn = (rows) => rows.some(({ at }) => at > Number(document.body.dataset.drawnAt) - SLACK_US);

/** Returns the rows of a list as pairs [key, row]. */
const keyedRows = (list) => [...list.querySelectorAll("[data-key]")].map((row) => [row.dataset.key, row]);

customElements.define("call-list", CallList);
