/**
 * Queues events and hands them on once per animation frame, for 2 to 8 ms; by a timer in a hidden tab, which gets no frames,
 * and in a window that gets none though it counts as visible (on another workspace, or while drawing stalls). During a flood
 * it skips frames: style, layout and paint cost about the same for ten events as for two hundred, so after each drawing it
 * leaves the page twice the time that the drawing took.
 */
import { QueuedBlocks } from "./queued-blocks.js";

const MIN_MS = 2; // per frame: style, layout and paint of what was drawn take twice as long again
const MAX_MS = 8; // per frame, with many items queued
const ITEMS_PER_MS = 40; // a frame gets one more ms per so many queued items
const FLOOD = 24; // queued items; up to so many are drawn in the next frame
const BACKLOG = 1500; // queued items; from here on catching up goes before smoothness
const SHARE = 3; // in a flood a drawing takes one of so many parts of the time
const MAX_PAUSE = 120; // ms from the start of a drawing to the next one
const HIDDEN = 250; // ms between two flushes in a hidden tab
const NO_FRAME = 2000; // ms without a frame, after which a visible page is flushed by a timer

export class DrawQueue {
  #items = [];
  #blocks = new QueuedBlocks();
  #next = 0;
  #flush;
  #frame = 0;
  #timer = 0;
  #pausedUntil = 0; // in ms of `performance.now()`; a flood waits for it
  #onVisibilityChange = () => this.#reschedule();

  /** @param {(take: () => object | undefined) => void} flush calls `take` until it returns undefined */
  constructor(flush) {
    this.#flush = flush;
    document.addEventListener("visibilitychange", this.#onVisibilityChange);
  }

  get length() {
    return this.#items.length - this.#next;
  }

  push(items) {
    this.#blocks.add(items);
    for (const item of items) this.#items.push(item);
    this.#schedule();
  }

  clear() {
    this.#items = [];
    this.#blocks.clear();
    this.#next = 0;
  }

  close() {
    this.clear();
    this.#cancel();
    document.removeEventListener("visibilitychange", this.#onVisibilityChange);
  }

  #schedule() {
    if (this.#frame || this.#timer || !this.length) return;
    if (!document.hidden) this.#frame = requestAnimationFrame((now) => this.#onFrame(now));
    this.#timer = setTimeout(() => this.#run(document.hidden ? Infinity : MAX_PAUSE), document.hidden ? HIDDEN : NO_FRAME);
  }

  #onFrame(now) {
    this.#cancel();
    if (now < this.#pausedUntil && this.length > FLOOD && this.length < BACKLOG) return this.#schedule();
    const start = performance.now();
    this.#run(Math.min(MAX_MS, MIN_MS + this.length / ITEMS_PER_MS));
    // In a task of its own, so that the time includes the paint.
    setTimeout(() => (this.#pausedUntil = start + Math.min(MAX_PAUSE, SHARE * (performance.now() - start))));
    return undefined;
  }

  #reschedule() {
    this.#cancel();
    this.#schedule();
  }

  #cancel() {
    cancelAnimationFrame(this.#frame);
    clearTimeout(this.#timer);
    this.#frame = this.#timer = 0;
  }

  #run(budgetMs) {
    this.#cancel();
    const end = performance.now() + budgetMs;
    this.#flush(() => (performance.now() < end ? this.#take() : undefined));
    if (this.#next >= this.#items.length) this.clear();
    this.#schedule();
  }

  #take() {
    if (!this.length) return undefined;
    this.#blocks.draws(this.#items[this.#next]);
    return this.#items[this.#next++];
  }
}
