/**
 * `<conversation-timeline data-topic data-epoch data-src>`: a conversation along time, fetched again as it goes on. The page
 * holds a window of the rows; others are fetched as the reader scrolls. Zoomed by keys, buttons, dragging, and Ctrl and
 * wheel. Dispatches the events of a `LivePart`, and `event:picked` {row} (bubbles).
 */
import { RequestError, markup } from "./fetch.js";
import { render } from "./html.js";
import { onKey } from "./keys.js";
import { LivePart } from "./live-part.js";
import { TimelinePointer } from "./timeline-pointer.js";
import { TimelineScale } from "./timeline-scale.js";
import { TimelineWindow } from "./timeline-window.js";

const PAN = 0.2; // of the visible time, per key press
const RETRY_MS = 2_000; // after rows could not be fetched

class ConversationTimeline extends HTMLElement {
  #scale = new TimelineScale();
  #window = new TimelineWindow(this, this.#scale);
  #abort = new AbortController();
  #live = null;
  #isFetching = false;
  #pickedSeq = "";
  #hasDispatched = false;
  #retryTimer = 0;
  #requestCount = 0;
  #renderedRequest = 0; // number of the newest request whose response was rendered

  connectedCallback() {
    const { signal } = this.#abort;
    this.toggleAttribute("data-live", true);
    this.#live = new LivePart(this, () => this.#refresh(this.#window.isAtEnd ? null : this.#window.part.dataset.start));
    this.addEventListener("click", (event) => this.#click(event), { signal });
    this.addEventListener("scroll", () => this.#fetchVisible(), { signal, capture: true, passive: true });
    this.addEventListener("focusin", ({ target }) => target.matches(".timeline-rows .span:focus-visible") && this.#pick(target), { signal });
    for (const [key, action] of Object.entries(this.#keys)) signal.addEventListener("abort", onKey(key, action));
    new TimelinePointer(this, this.#scale, () => this.#window.place(), signal);
    this.#showStart();
  }

  disconnectedCallback() {
    this.#live.close();
    this.#abort.abort();
    clearTimeout(this.#retryTimer);
  }

  /** Show the row of the event in the page's URL, else the newest row. */
  #showStart() {
    const row = this.querySelector('[aria-current="true"][data-seq]');
    this.#window.settle(row?.dataset.seq);
    if (row) this.#pick(row);
    (row ?? this.#window.rows.at(-1))?.scrollIntoView({ block: row ? "center" : "end" });
  }

  /** Fetch a window of the rows. @param {string | number | null} from  its first row; null: the window at the end */
  async #refresh(from) {
    const failures = this.querySelector("[data-failures]").matches("[aria-current]") ? "&failures=1" : "";
    const address = this.dataset.src + (from === null ? "" : `&from=${from}`) + failures;
    const requestNumber = (this.#requestCount += 1);
    const html = await markup(address, { signal: this.#abort.signal });
    if (requestNumber < this.#renderedRequest) return; // a later request was answered first
    this.#renderedRequest = requestNumber;
    this.#window.draw(render(html), this.#pickedSeq);
  }

  /** Fetch the rows that the reader scrolls to, until the window holds them. */
  async #fetchVisible() {
    if (this.#isFetching) return;
    clearTimeout(this.#retryTimer);
    this.#isFetching = true;
    try {
      for (let wanted = this.#window.wanted; wanted !== null; wanted = this.#window.wanted) await this.#refresh(wanted);
    } catch (error) {
      if (!(error instanceof RequestError) && error.name !== "AbortError") throw error;
      if (error.isTemporary) this.#retryTimer = setTimeout(() => this.#fetchVisible(), RETRY_MS);
    }
    this.#isFetching = false;
  }

  #click(event) {
    const zoom = event.target.closest("[data-zoom]")?.dataset.zoom;
    const row = event.target.closest(".timeline-rows .span");
    if (zoom) return this.#zoom({ in: 1, out: -1, all: 0 }[zoom]);
    if (!row || event.metaKey || event.ctrlKey || event.shiftKey || event.detail === 0) return undefined; // Enter follows the link
    event.preventDefault();
    return this.#pick(row);
  }

  #pick(row) {
    if (row.getAttribute("aria-current") === "true" && this.#hasDispatched) return;
    this.#hasDispatched = true; // the event in the page's URL is already marked, but must be dispatched once
    this.querySelector('[aria-current="true"][data-seq]')?.removeAttribute("aria-current");
    row.setAttribute("aria-current", "true");
    this.#pickedSeq = row.dataset.seq;
    this.#scale.reveal(Number(row.querySelector(".bar").getAttribute("x")));
    this.#window.place();
    this.dispatchEvent(new CustomEvent("event:picked", { bubbles: true, detail: { row } }));
  }

  #step(step) {
    const { rows } = this.#window;
    const current = rows.findIndex((row) => row.getAttribute("aria-current"));
    const next = rows[current < 0 ? rows.length - 1 : Math.max(0, Math.min(rows.length - 1, current + step))];
    if (!next) return;
    this.#pick(next);
    next.focus({ preventScroll: true });
    next.scrollIntoView({ block: "nearest" });
  }

  /** @param {number} direction 1: in, around the picked row if it is visible; -1: out; 0: show everything */
  #zoom(direction) {
    const bar = this.#window.row(this.#pickedSeq)?.querySelector(".bar");
    if (direction) this.#scale.zoom(direction, bar ? this.#scale.share(Number(bar.getAttribute("x"))) : 0.5);
    else this.#scale.all();
    this.#window.place();
  }

  #pan(share) {
    this.#scale.pan(share);
    this.#window.place();
  }

  get #keys() {
    return {
      j: () => this.#step(1),
      k: () => this.#step(-1),
      ArrowLeft: () => this.#pan(-PAN),
      ArrowRight: () => this.#pan(PAN),
      "+": () => this.#zoom(1),
      "=": () => this.#zoom(1),
      "-": () => this.#zoom(-1),
      0: () => this.#zoom(0),
      Home: () => (this.#window.scroller.scrollTop = 0),
      End: () => (this.#window.scroller.scrollTop = this.#window.scroller.scrollHeight),
    };
  }
}
customElements.define("conversation-timeline", ConversationTimeline);
