/** Hand events on once per animation frame, for 2 to 8 ms; by a timer while the tab is hidden, which gets no frames. */

const LEAST = 2; // ms of one frame: to style, lay out and paint what is drawn then costs twice as much again
const MOST = 8; // ms of one frame, when much waits
const WAITING = 250; // a frame gets one more ms for so many items that wait
const HIDDEN = 250; // ms between two flushes of a hidden tab

export class FrameQueue {
  #items = [];
  #next = 0;
  #flush;
  #frame = 0;
  #timer = 0;
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
    else this.#frame = requestAnimationFrame(() => this.#run(Math.min(MOST, LEAST + this.length / WAITING)));
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
