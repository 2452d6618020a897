/**
 * Hand events on once per animation frame, for 2 to 8 ms; by a timer while the tab is hidden, which gets no frames.
 * In a flood not in every frame: to style, lay out and paint costs about the same for ten events as for two hundred, so
 * after a drawing as many frames pass as give the reader's own doing twice the time that it took.
 */

const MIN_MS = 2; // ms of one frame: to style, lay out and paint what is drawn then costs twice as much again
const MAX_MS = 8; // ms of one frame, when much waits
const WAITING = 40; // a frame gets one more ms for so many items that wait
const FLOOD = 24; // items that wait; fewer are drawn in the next frame
const DEEP = 1500; // items that wait; to catch up then goes before smoothness
const SHARE = 3; // a drawing takes one of so many parts of the time, in a flood
const PAUSE = 120; // ms between two drawings at most
const HIDDEN = 250; // ms between two flushes of a hidden tab

export class DrawQueue {
  #items = [];
  #next = 0;
  #flush;
  #frame = 0;
  #timer = 0;
  #rest = 0; // until then a flood waits, as `performance.now()` says it
  #onVisibility = () => this.#again();

  /** @param {(take: () => object | undefined) => void} flush calls `take` until it answers undefined */
  constructor(flush) {
    this.#flush = flush;
    document.addEventListener("visibilitychange", this.#onVisibility);
  }

  get length() {
    return this.#items.length - this.#next;
  }

  push(items) {
    for (const item of items) this.#items.push(item);
    this.#schedule();
  }

  clear() {
    this.#items = [];
    this.#next = 0;
  }

  close() {
    this.clear();
    this.#cancel();
    document.removeEventListener("visibilitychange", this.#onVisibility);
  }

  #schedule() {
    if (this.#frame || this.#timer || !this.length) return;
    if (document.hidden) this.#timer = setTimeout(() => this.#run(Infinity), HIDDEN);
    else this.#frame = requestAnimationFrame((now) => this.#tick(now));
  }

  #tick(now) {
    this.#frame = 0;
    if (now < this.#rest && this.length > FLOOD && this.length < DEEP) return this.#schedule();
    const start = performance.now();
    this.#run(Math.min(MAX_MS, MIN_MS + this.length / WAITING));
    setTimeout(() => (this.#rest = start + Math.min(PAUSE, SHARE * (performance.now() - start)))); // after it was painted
    return undefined;
  }

  #again() {
    this.#cancel();
    this.#schedule();
  }

  #cancel() {
    cancelAnimationFrame(this.#frame);
    clearTimeout(this.#timer);
    this.#frame = this.#timer = 0;
  }

  #run(budget) {
    this.#frame = this.#timer = 0;
    const end = performance.now() + budget;
    this.#flush(() => (performance.now() < end ? this.#items[this.#next++] : undefined));
    if (this.#next >= this.#items.length) this.clear();
    this.#schedule();
  }
}
