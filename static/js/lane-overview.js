/**
 * `<lane-overview data-src>`: a minimap of the whole conversation beside its lanes, with the visible range marked. Pressing
 * or dragging goes to that place. Keys: arrows move by a screen, Page Up and Page Down by a tenth; Home and End.
 */
import { markup } from "./fetch.js";
import { render } from "./html.js";
import { stretchesOf, visibleRows } from "./visible-rows.js";

const MOVE_MS = 60; // between two moves of the mark while the lanes are scrolled: it moves by less than a pixel a frame
const PAUSE_MS = 3_000; // between two renderings while events arrive
const KEY_DELAY_MS = 150; // from the last key press until the lanes follow
const MIN_SHARE = 0.012; // minimum height of the mark, as a share of the strip

class LaneOverview extends HTMLElement {
  #stop = new AbortController();
  #range = [1, 1]; // seqs of the first and last event in view
  #head = 0;
  #mark = Object.assign(document.createElement("i"), { className: "shown" }); // beside the strip, which its moves do not repaint
  #updateFrame = 0;
  #updateTimer = 0;
  #renderTimer = 0;
  #keyTimer = 0;
  #isSeeking = false; // during a drag or key presses: new rows do not move the mark

  connectedCallback() {
    const { signal } = this.#stop;
    Object.assign(this, { role: "slider", tabIndex: 0, ariaLabel: "Overview of the conversation", ariaOrientation: "vertical" });
    this.addEventListener("pointerdown", (event) => this.#startDrag(event), { signal });
    this.addEventListener("keydown", (event) => this.#handleKey(event), { signal });
    this.#scroller.addEventListener("scroll", () => this.#scheduleUpdate(), { signal, passive: true });
    for (const name of ["transcript:drawn", "page:drawn"]) document.addEventListener(name, () => this.#scheduleUpdate(), { signal });
    this.#update();
  }

  disconnectedCallback() {
    this.#stop.abort();
    cancelAnimationFrame(this.#updateFrame);
    for (const timer of [this.#updateTimer, this.#renderTimer, this.#keyTimer]) clearTimeout(timer);
  }

  get #transcript() { return this.closest("live-transcript"); }
  get #scroller() { return this.parentElement.querySelector(".transcript"); }

  #scheduleUpdate() {
    this.#updateFrame ||= requestAnimationFrame(() => ((this.#updateFrame = 0), this.#pinTimes(this.#scroller)));
    this.#updateTimer ||= setTimeout(() => ((this.#updateTimer = 0), this.#update()), MOVE_MS);
  }

  /** Move the mark to the rows in view, and render the strip again if there are newer events. */
  #update() {
    const rows = visibleRows(this.#scroller);
    this.#pinTimes(this.#scroller);
    this.#head = Math.max(this.#head, Number(this.#transcript.dataset.head), Number(rows.at(-1)?.dataset.seq ?? 0));
    if (rows.length && !this.#isSeeking) this.#moveMark(Number(rows[0].dataset.seq), this.#lastIn(rows.at(-1)));
    if (this.#head > this.#renderedHead) this.#renderSoon(this.#renderedHead ? PAUSE_MS : 0);
  }

  #renderSoon(delayMs = PAUSE_MS) {
    this.#renderTimer ||= setTimeout(() => this.#render(), delayMs);
  }

  /** The seq of the last event that a row shows. For the newest row that is the head: the end of its call has no row of its own. */
  #lastIn(row) {
    const isNewest = row === stretchesOf(this.#scroller).at(-1).lastElementChild && !this.#scroller.closest("tail-follow").hasAttribute("data-has-newer");
    return isNewest ? this.#head : Number(row.dataset.seq);
  }

  /** Keep the times in view while the lanes are scrolled horizontally. */
  #pinTimes(scroller) {
    const scrolled = `${scroller.scrollLeft}px`;
    if (scroller.style.getPropertyValue("--aside") === scrolled || (!scroller.scrollLeft && !scroller.hasAttribute("data-aside"))) return;
    scroller.toggleAttribute("data-aside", scroller.scrollLeft > 0);
    scroller.style.setProperty("--aside", scrolled);
  }

  get #renderedHead() { return Number(this.firstElementChild?.dataset.head ?? 0); }

  #moveMark(first, last) {
    if (this.ariaValueMax === String(this.#head) && first === this.#range[0] && last === this.#range[1]) return;
    this.#range = [first, last];
    Object.assign(this, { ariaValueMin: 1, ariaValueMax: this.#head, ariaValueNow: last });
    const number = (seq) => seq.toLocaleString("en");
    this.ariaValueText = `Events ${number(first)} to ${number(last)} of ${number(this.#head)}`;
    this.title = this.ariaValueText;
    const share = Math.max(MIN_SHARE, (last - first + 1) / this.#head);
    this.#mark.style.transform = `translateY(${(100 * Math.min(1 - share, (first - 1) / this.#head)).toFixed(2)}%)`;
    this.#mark.style.setProperty("--share", `${(100 * share).toFixed(1)}%`);
  }

  async #render() {
    const head = this.#head;
    let isRepeated = false;
    try {
      const rendered = render(await markup(this.dataset.src, { signal: this.#stop.signal }));
      this.replaceChildren(rendered.querySelector("svg"), this.#mark);
      this.#moveMark(...this.#range);
    } catch (error) {
      if (!["RequestError", "AbortError"].includes(error.name)) throw error;
      isRepeated = error.isTemporary;
    }
    this.#renderTimer = 0;
    if (this.isConnected && (isRepeated || this.#head > head)) this.#renderSoon();
  }

  #startDrag(event) {
    if (event.button) return;
    event.preventDefault();
    this.focus({ preventScroll: true });
    this.setPointerCapture(event.pointerId);
    clearTimeout(this.#keyTimer);
    this.#isSeeking = true;
    const dragEnd = new AbortController();
    const moveTo = ({ clientY }) => this.#moveMark(...this.#rangeAround(clientY));
    moveTo(event);
    this.addEventListener("pointermove", moveTo, { signal: dragEnd.signal });
    this.addEventListener("pointerup", () => (dragEnd.abort(), this.#showFrom(this.#range[0])), { signal: dragEnd.signal });
    this.addEventListener("pointercancel", () => (dragEnd.abort(), (this.#isSeeking = false), this.#update()), { signal: dragEnd.signal });
  }

  /** Returns a range around the pointer with as many events as are in view. */
  #rangeAround(y) {
    const { top, height } = this.getBoundingClientRect();
    const count = this.#range[1] - this.#range[0];
    const middle = Math.round(((y - top) / height) * this.#head);
    const first = Math.max(1, Math.min(this.#head - count, middle - Math.round(count / 2)));
    return [first, first + count];
  }

  #handleKey(event) {
    const [first, last] = this.#range;
    const [screen, tenth] = [Math.max(1, last - first), Math.ceil(this.#head / 10)];
    const step = { ArrowUp: -screen, ArrowDown: screen, ArrowLeft: -screen, ArrowRight: screen, PageUp: -tenth, PageDown: tenth, Home: -this.#head, End: this.#head }[event.key];
    if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    const next = Math.max(1, Math.min(this.#head - screen, first + step));
    this.#isSeeking = true;
    this.#moveMark(next, next + screen);
    clearTimeout(this.#keyTimer);
    this.#keyTimer = setTimeout(() => this.#showFrom(next), KEY_DELAY_MS);
  }

  /** Show the lanes from an event on, or follow them from the end. Dispatches `page:wanted` or `tail:latest` (bubbling). */
  #showFrom(seq) {
    this.#isSeeking = false;
    const isEnd = this.#range[1] >= this.#head;
    this.dispatchEvent(new CustomEvent(isEnd ? "tail:latest" : "page:wanted", { bubbles: true, detail: { seq } }));
  }
}
customElements.define("lane-overview", LaneOverview);
