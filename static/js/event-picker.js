/** Picks one event of the transcript: by its number, by `j` and `k`, by the page's URL. Its collapsed content is opened. */
import { copy } from "./clipboard.js";
import { onKey } from "./keys.js";

const COLLAPSED = "details.tool, details.unfold, details.again"; // a row's own content, not its side notes
const QUIETLY = { preventScroll: true, focusVisible: false }; // the reader did not move the focus: no focus ring

/**
 * Contains the transcript of one conversation and everything that links into it. `data-event` is the seq to start with.
 * Dispatches `event:picked` {row, isSought: through a URL or a link} and `said` {words} (both bubble).
 */
class EventPicker extends HTMLElement {
  #scroller;
  #keyRemovers = [];

  connectedCallback() {
    this.#scroller = this.querySelector(".transcript");
    this.addEventListener("click", (event) => this.#click(event));
    this.#keyRemovers = Object.entries(this.#keys).map(([key, action]) => onKey(key, action));
    this.addEventListener("tail:following", ({ detail }) => detail.isFollowing && this.#removeLink());
    if (document.activeElement === document.body) this.#scroller.focus(QUIETLY); // so that Page Up and Page Down scroll it
    const start = this.dataset.event || location.hash.slice(2);
    if (start) this.#open(this.#row(start) ?? this.#rowIncluding(Number(start)));
  }

  disconnectedCallback() {
    this.#keyRemovers.forEach((remove) => remove());
  }

  get #picked() {
    return this.#scroller.querySelector('[aria-current="true"]');
  }

  #row(seq) {
    return document.getElementById(`e${seq}`)?.closest("[data-seq]") ?? null;
  }

  /** Returns the row that includes an event without a row of its own, as the row of a text includes its tokens. */
  #rowIncluding(seq) {
    const rows = [...this.#scroller.querySelectorAll("[data-seq]")];
    const includes = (row) => seq < Number(row.dataset.seq) && seq >= parseInt(row.querySelector(":scope > .seq")?.dataset.from, 10);
    return rows.find(includes) ?? rows.findLast((row) => Number(row.dataset.seq) <= seq);
  }

  /** Whether a row on the page includes an event. If not, the link to the event loads the page that does. */
  #isOnPage(seq) {
    const last = [...this.#scroller.querySelectorAll("[data-seq]")].at(-1);
    return seq <= Number(last?.dataset.seq ?? 0) || !this.querySelector("live-transcript[data-has-newer], tail-follow[data-has-newer]");
  }

  /**
   * Make a row visible at the current level of detail, open it unless its request waits for a decision, and scroll it to the
   * middle, a long one to its beginning.
   */
  #open(row) {
    if (!row) return;
    this.querySelector("detail-level").reveal(row.dataset.level);
    const collapsed = row.querySelector(COLLAPSED);
    if (collapsed && !row.querySelector("decision-form")) collapsed.open = true; // the form has the arguments too
    this.#pick(row, row.offsetHeight > this.#scroller.clientHeight ? "start" : "center");
  }

  #pick(row, block) {
    this.#picked?.removeAttribute("aria-current");
    row.setAttribute("aria-current", "true");
    if (block) row.scrollIntoView({ block });
    this.dispatchEvent(new CustomEvent("event:picked", { bubbles: true, detail: { row, isSought: Boolean(block) && block !== "nearest" } }));
  }

  #click(event) {
    if (event.target.name === "detail" && event.detail) this.#scroller.focus(QUIETLY); // keys do not act inside fields
    const link = event.target.closest("a.seq, .strip a[href^='#e'], .spans a, [data-outline]");
    const row = event.target.closest("[data-seq]");
    if (link) return this.#follow(event, link);
    if (row && !event.target.closest("a, button, summary, input") && getSelection().isCollapsed) this.#pick(row);
    return undefined;
  }

  #follow(event, link) {
    if (event.metaKey || event.ctrlKey || event.shiftKey) return;
    const seq = link.hash.slice(2);
    const row = this.#row(seq) ?? (this.#isOnPage(Number(seq)) ? this.#rowIncluding(Number(seq)) : null);
    if (!row) return;
    event.preventDefault();
    this.#open(row);
    if (link.matches(".seq")) this.#copyLink(row);
  }

  /** Put an event into the page's URL, and copy that. */
  async #copyLink(row) {
    const url = new URL(location.href);
    url.searchParams.set("event", row.dataset.seq);
    url.hash = `e${row.dataset.seq}`;
    history.replaceState(history.state, "", url);
    const text = (await copy(url.href)) ? "Link to event # copied" : "Copy the address bar to link to event #";
    row.dispatchEvent(new CustomEvent("said", { bubbles: true, detail: { words: text.replace("#", row.dataset.seq) } }));
  }

  /** Remove the event from the page's URL once the reader is back at the tail, so that a reload shows the tail. */
  #removeLink() {
    const url = new URL(location.href);
    if (!url.searchParams.has("event")) return;
    url.searchParams.delete("event");
    url.hash = "";
    history.replaceState(history.state, "", url);
  }

  get #keys() {
    return {
      j: () => this.#step(1),
      k: () => this.#step(-1),
      o: () => this.#toggle(),
      c: () => this.#picked && this.#copyLink(this.#picked),
      Home: () => this.#scroller.dispatchEvent(new CustomEvent("tail:oldest", { bubbles: true })),
      End: () => this.#scroller.dispatchEvent(new CustomEvent("tail:latest", { bubbles: true })),
    };
  }

  #step(step) {
    const rows = [...this.#scroller.querySelectorAll("[data-seq]")].filter((row) => row.checkVisibility());
    const current = this.#picked ? rows.indexOf(this.#picked) : this.#lastInView(rows) - step;
    const next = rows[Math.max(0, Math.min(rows.length - 1, current + step))];
    if (next) this.#pick(next, "nearest");
  }

  /** Returns the index of the last row that is entirely in view. */
  #lastInView(rows) {
    const bottom = this.#scroller.getBoundingClientRect().bottom;
    return rows.findLastIndex((row) => row.getBoundingClientRect().bottom <= bottom);
  }

  #toggle() {
    this.#picked?.querySelector(COLLAPSED)?.querySelector("summary").click();
  }
}
customElements.define("event-picker", EventPicker);
