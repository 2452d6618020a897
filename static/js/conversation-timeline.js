/**
 * `<conversation-timeline data-topic data-epoch data-src>`: a conversation along time, drawn again as it goes on. The page
 * holds a window of the rows; others are asked for as the reader scrolls. Zoomed by keys, buttons, dragging, and the wheel
 * with Ctrl. Tells what `live-transcript` tells of the record, and `event:picked` {row}.
 */
import { RequestError, markup } from "./fetch.js";
import { render } from "./html.js";
import { onKey } from "./keys.js";
import { LivePart } from "./live-part.js";
import { TimelinePointer } from "./timeline-pointer.js";
import { TimelineScale } from "./timeline-scale.js";
import { TimelineWindow } from "./timeline-window.js";

const PAN = 0.2; // of what is shown

class ConversationTimeline extends HTMLElement {
  #scale = new TimelineScale();
  #window = new TimelineWindow(this, this.#scale);
  #stop = new AbortController();
  #live = null;
  #isAsking = false;
  #picked = ""; // the seq of the chosen row
  #isTold = false;

  connectedCallback() {
    const { signal } = this.#stop;
    this.toggleAttribute("data-live", true);
    this.#live = new LivePart(this, () => this.#renew(this.#window.isAtEnd ? null : this.#window.part.dataset.start));
    this.addEventListener("click", (event) => this.#click(event), { signal });
    this.addEventListener("scroll", () => this.#scrolled(), { signal, capture: true, passive: true });
    this.addEventListener("focusin", ({ target }) => target.matches(".timeline-rows .span:focus-visible") && this.#pick(target), { signal });
    for (const [key, act] of Object.entries(this.#keys)) signal.addEventListener("abort", onKey(key, act));
    new TimelinePointer(this, this.#scale, () => this.#window.place(), signal);
    this.#begin();
  }

  disconnectedCallback() {
    this.#live.close();
    this.#stop.abort();
  }

  /** Show the row of the event that the address names, else the newest. */
  #begin() {
    const row = this.querySelector('[aria-current="true"][data-seq]');
    this.#window.settle(row?.dataset.seq);
    if (row) this.#pick(row);
    (row ?? this.#window.rows.at(-1))?.scrollIntoView({ block: row ? "center" : "end" });
  }

  async #renew(from) {
    const failures = this.querySelector("[data-failures]").matches("[aria-current]") ? "&failures=1" : "";
    const address = this.dataset.src + (from === null ? "" : `&from=${from}`) + failures;
    this.#window.draw(render(await markup(address, { signal: this.#stop.signal })), this.#picked);
  }

  /** Ask for the rows that the reader scrolls to, until they are there. */
  async #scrolled() {
    if (this.#isAsking) return;
    this.#isAsking = true;
    try {
      for (let wanted = this.#window.wanted; wanted !== null; wanted = this.#window.wanted) await this.#renew(wanted);
    } catch (error) {
      if (!(error instanceof RequestError) && error.name !== "AbortError") throw error; // the next scroll asks again
    }
    this.#isAsking = false;
  }

  #click(event) {
    const zoom = event.target.closest("[data-zoom]")?.dataset.zoom;
    const row = event.target.closest(".timeline-rows .span");
    if (zoom) return this.#zoom({ in: 1, out: -1, all: 0 }[zoom]);
    if (!row || event.metaKey || event.ctrlKey || event.shiftKey || event.detail === 0) return undefined; // Enter opens it
    event.preventDefault();
    return this.#pick(row);
  }

  #pick(row) {
    if (row.getAttribute("aria-current") === "true" && this.#isTold) return;
    this.#isTold = true; // what the address named is told once, too
    this.querySelector('[aria-current="true"][data-seq]')?.removeAttribute("aria-current");
    row.setAttribute("aria-current", "true");
    this.#picked = row.dataset.seq;
    this.#scale.reveal(Number(row.querySelector(".bar").getAttribute("x")));
    this.#window.place();
    this.dispatchEvent(new CustomEvent("event:picked", { bubbles: true, detail: { row } }));
  }

  #step(step) {
    const { rows } = this.#window;
    const here = rows.findIndex((row) => row.getAttribute("aria-current"));
    const next = rows[here < 0 ? rows.length - 1 : Math.max(0, Math.min(rows.length - 1, here + step))];
    if (!next) return;
    this.#pick(next);
    next.focus({ preventScroll: true });
    next.scrollIntoView({ block: "nearest" });
  }

  /** @param {number} direction 1: closer, around the chosen row where it is shown; 0: all */
  #zoom(direction) {
    const bar = this.#window.row(this.#picked)?.querySelector(".bar");
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
