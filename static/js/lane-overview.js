/**
 * `<lane-overview data-src>`: the whole conversation as a strip beside its lanes, with what is in view marked. A press or a
 * drag leads to that place, and so do keys: arrows by a screen, Page Up and Page Down by a tenth, Home and End.
 */
import { markup } from "./fetch.js";
import { render } from "./html.js";
import { stretchesOf, visibleRows } from "./visible-rows.js";

const PAUSE_MS = 3_000; // between two drawings while events come
const SETTLED_MS = 150; // after the last key
const MIN_SHARE = 0.012; // of the strip: so high is what is marked at least

class LaneOverview extends HTMLElement {
  #stop = new AbortController();
  #shown = [1, 1]; // first and last event in view
  #head = 0;
  #box = Object.assign(document.createElement("i"), { className: "shown" }); // beside the strip, which is not drawn anew for it
  #frame = 0;
  #timer = 0;
  #leap = 0;
  #isAimed = false; // a place is pointed at: what is drawn meanwhile does not move the mark away

  connectedCallback() {
    const { signal } = this.#stop;
    Object.assign(this, { role: "slider", tabIndex: 0, ariaLabel: "Overview of the conversation", ariaOrientation: "vertical" });
    this.addEventListener("pointerdown", (event) => this.#press(event), { signal });
    this.addEventListener("keydown", (event) => this.#key(event), { signal });
    this.#scroller.addEventListener("scroll", () => this.#plan(), { signal, passive: true });
    for (const name of ["transcript:drawn", "page:drawn"]) document.addEventListener(name, () => this.#plan(), { signal });
    this.#look();
    this.#draw();
  }

  disconnectedCallback() {
    this.#stop.abort();
    cancelAnimationFrame(this.#frame);
    clearTimeout(this.#timer);
    clearTimeout(this.#leap);
  }

  get #host() { return this.closest("live-transcript"); }
  get #scroller() { return this.parentElement.querySelector(".transcript"); }

  #plan() {
    this.#frame ||= requestAnimationFrame(() => ((this.#frame = 0), this.#look()));
  }

  /** Mark what is in view. */
  #look() {
    const rows = visibleRows(this.#scroller);
    this.#keepTimes(this.#scroller);
    this.#head = Math.max(this.#head, Number(this.#host.dataset.head), Number(rows.at(-1)?.dataset.seq ?? 0));
    if (rows.length && !this.#isAimed) this.#mark(Number(rows[0].dataset.seq), this.#lastIn(rows.at(-1)));
    if (this.#head > this.#drawn) this.#timer ||= setTimeout(() => this.#draw(), this.#drawn ? PAUSE_MS : 0);
  }

  /** The last event that a row tells of: of the newest one the conversation's last, such as the end of its call. */
  #lastIn(row) {
    const isNewest = row === stretchesOf(this.#scroller).at(-1).lastElementChild && !this.#scroller.closest("tail-follow").hasAttribute("data-has-newer");
    return isNewest ? this.#head : Number(row.dataset.seq);
  }

  /** Times stay in sight while the lanes are scrolled sideways. */
  #keepTimes(scroller) {
    const aside = `${scroller.scrollLeft}px`;
    if (scroller.style.getPropertyValue("--aside") === aside || (!scroller.scrollLeft && !scroller.hasAttribute("data-aside"))) return;
    scroller.toggleAttribute("data-aside", scroller.scrollLeft > 0);
    scroller.style.setProperty("--aside", aside);
  }

  get #drawn() { return Number(this.firstElementChild?.dataset.head ?? 0); }

  #mark(first, last) {
    if (this.ariaValueMax === String(this.#head) && first === this.#shown[0] && last === this.#shown[1]) return;
    this.#shown = [first, last];
    Object.assign(this, { ariaValueMin: 1, ariaValueMax: this.#head, ariaValueNow: last });
    const number = (seq) => seq.toLocaleString("en");
    this.ariaValueText = `Events ${number(first)} to ${number(last)} of ${number(this.#head)}`;
    this.title = this.ariaValueText;
    const share = Math.max(MIN_SHARE, (last - first + 1) / this.#head);
    this.#box.style.transform = `translateY(${(100 * Math.min(1 - share, (first - 1) / this.#head)).toFixed(2)}%)`;
    this.#box.style.setProperty("--share", `${(100 * share).toFixed(1)}%`);
  }

  async #draw() {
    try {
      const fresh = render(await markup(this.dataset.src, { signal: this.#stop.signal }));
      this.replaceChildren(fresh.querySelector("svg"), this.#box);
      this.#mark(...this.#shown);
    } catch (error) {
      if (!["RequestError", "AbortError"].includes(error.name)) throw error; // the next event asks again
    }
    this.#timer = 0;
  }

  #press(event) {
    if (event.button) return;
    event.preventDefault();
    this.focus({ preventScroll: true });
    this.setPointerCapture(event.pointerId);
    clearTimeout(this.#leap);
    this.#isAimed = true;
    const done = new AbortController();
    const mark = ({ clientY }) => this.#mark(...this.#around(clientY));
    mark(event);
    this.addEventListener("pointermove", mark, { signal: done.signal });
    this.addEventListener("pointerup", () => (done.abort(), this.#go(this.#shown[0])), { signal: done.signal });
    this.addEventListener("pointercancel", () => (done.abort(), (this.#isAimed = false), this.#look()), { signal: done.signal });
  }

  /** As many events as are in view, around where a pointer is. */
  #around(y) {
    const { top, height } = this.getBoundingClientRect();
    const count = this.#shown[1] - this.#shown[0];
    const middle = Math.round(((y - top) / height) * this.#head);
    const first = Math.max(1, Math.min(this.#head - count, middle - Math.round(count / 2)));
    return [first, first + count];
  }

  #key(event) {
    const [first, last] = this.#shown;
    const [screen, tenth] = [Math.max(1, last - first), Math.ceil(this.#head / 10)];
    const step = { ArrowUp: -screen, ArrowDown: screen, ArrowLeft: -screen, ArrowRight: screen, PageUp: -tenth, PageDown: tenth, Home: -this.#head, End: this.#head }[event.key];
    if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    const next = Math.max(1, Math.min(this.#head - screen, first + step));
    this.#isAimed = true;
    this.#mark(next, next + screen);
    clearTimeout(this.#leap);
    this.#leap = setTimeout(() => this.#go(next), SETTLED_MS);
  }

  /** Show the lanes from an event on; at the end, follow them. */
  #go(seq) {
    this.#isAimed = false;
    const isEnd = this.#shown[1] >= this.#head;
    this.dispatchEvent(new CustomEvent(isEnd ? "tail:latest" : "page:wanted", { bubbles: true, detail: { seq } }));
  }
}
customElements.define("lane-overview", LaneOverview);
