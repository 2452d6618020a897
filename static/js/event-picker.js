/** One event of the transcript is picked: by its number, by j and k, by the address. What is collapsed around it opens. */
import { copy } from "./clipboard.js";
import { onKey } from "./keys.js";

const COLLAPSED = "details.tool, details.unfold, details.again"; // what of a row is its content, not a side note
const QUIETLY = { preventScroll: true, focusVisible: false }; // nobody asked where the focus is

/**
 * Around the transcript of one conversation and all that links into it. Tells, bubbling: `event:picked` {row, isSought: by an address or a link}, `said` {words}.
 * `data-event` is the seq to start with.
 */
class EventPicker extends HTMLElement {
  #scroller;
  #stops = [];

  connectedCallback() {
    this.#scroller = this.querySelector(".transcript");
    this.addEventListener("click", (event) => this.#click(event));
    this.#stops = Object.entries(this.#keys).map(([key, act]) => onKey(key, act));
    this.addEventListener("tail:following", ({ detail }) => detail.isFollowing && this.#unlink());
    if (document.activeElement === document.body) this.#scroller.focus(QUIETLY); // so that paging keys scroll it
    const start = this.dataset.event || location.hash.slice(2);
    if (start) this.#open(this.#row(start) ?? this.#before(Number(start)));
  }

  disconnectedCallback() {
    this.#stops.forEach((stop) => stop());
  }

  get #picked() {
    return this.#scroller.querySelector('[aria-current="true"]');
  }

  #row(seq) {
    return document.getElementById(`e${seq}`)?.closest("[data-seq]") ?? null;
  }

  /** The row in which an event without a row of its own is drawn: a token in that of the text it is part of. */
  #before(seq) {
    const rows = [...this.#scroller.querySelectorAll("[data-seq]")];
    const isPart = (row) => seq < Number(row.dataset.seq) && seq >= parseInt(row.querySelector(":scope > .seq")?.dataset.from, 10);
    return rows.find(isPart) ?? rows.findLast((row) => Number(row.dataset.seq) <= seq);
  }

  /** Whether an event is among what is drawn, in whatever row: else its link leads to its own page. */
  #isDrawn(seq) {
    const last = [...this.#scroller.querySelectorAll("[data-seq]")].at(-1);
    return seq <= Number(last?.dataset.seq ?? 0) || !this.querySelector("live-transcript[data-has-newer], tail-follow[data-has-newer]");
  }

  /** Show a row as an address meant it: visible, open, in the middle; one that is longer than the view from its beginning. */
  #open(row) {
    if (!row) return;
    this.querySelector("detail-level").reveal(row.dataset.level);
    const collapsed = row.querySelector(COLLAPSED);
    if (collapsed) collapsed.open = true;
    this.#pick(row, row.offsetHeight > this.#scroller.clientHeight ? "start" : "center");
  }

  #pick(row, block) {
    this.#picked?.removeAttribute("aria-current");
    row.setAttribute("aria-current", "true");
    if (block) row.scrollIntoView({ block });
    this.dispatchEvent(new CustomEvent("event:picked", { bubbles: true, detail: { row, isSought: Boolean(block) && block !== "nearest" } }));
  }

  #click(event) {
    if (event.target.name === "detail" && event.detail) this.#scroller.focus(QUIETLY); // letters act again
    const link = event.target.closest("a.seq, .strip a[href^='#e'], .spans a, [data-outline]");
    const row = event.target.closest("[data-seq]");
    if (link) return this.#follow(event, link);
    if (row && !event.target.closest("a, button, summary, input") && getSelection().isCollapsed) this.#pick(row);
    return undefined;
  }

  #follow(event, link) {
    if (event.metaKey || event.ctrlKey || event.shiftKey) return;
    const seq = link.hash.slice(2);
    const row = this.#row(seq) ?? (this.#isDrawn(Number(seq)) ? this.#before(Number(seq)) : null);
    if (!row) return;
    event.preventDefault();
    this.#open(row);
    if (link.matches(".seq")) this.#link(row);
  }

  async #link(row) {
    const address = new URL(location.href);
    address.searchParams.set("event", row.dataset.seq);
    address.hash = `e${row.dataset.seq}`;
    history.replaceState(history.state, "", address);
    const words = (await copy(address.href)) ? "Link to event # copied" : "Copy the address bar to link to event #";
    row.dispatchEvent(new CustomEvent("said", { bubbles: true, detail: { words: words.replace("#", row.dataset.seq) } }));
  }

  /** At the tail the address is the conversation's again: loaded anew it shows the tail. */
  #unlink() {
    const address = new URL(location.href);
    if (!address.searchParams.has("event")) return;
    address.searchParams.delete("event");
    address.hash = "";
    history.replaceState(history.state, "", address);
  }

  get #keys() {
    return {
      j: () => this.#step(1),
      k: () => this.#step(-1),
      o: () => this.#toggle(),
      c: () => this.#picked && this.#link(this.#picked),
      Home: () => this.#scroller.dispatchEvent(new CustomEvent("tail:oldest", { bubbles: true })),
      End: () => this.#scroller.dispatchEvent(new CustomEvent("tail:latest", { bubbles: true })),
    };
  }

  #step(step) {
    const rows = [...this.#scroller.querySelectorAll("[data-seq]")].filter((row) => row.checkVisibility());
    const here = this.#picked ? rows.indexOf(this.#picked) : this.#inView(rows) - step;
    const next = rows[Math.max(0, Math.min(rows.length - 1, here + step))];
    if (next) this.#pick(next, "nearest");
  }

  /** The last row that is wholly in view. */
  #inView(rows) {
    const bottom = this.#scroller.getBoundingClientRect().bottom;
    return rows.findLastIndex((row) => row.getBoundingClientRect().bottom <= bottom);
  }

  #toggle() {
    this.#picked?.querySelector(COLLAPSED)?.querySelector("summary").click();
  }
}
customElements.define("event-picker", EventPicker);
