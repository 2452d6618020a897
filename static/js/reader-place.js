/**
 * The row that a reader looks at. When what stands above it changes its height, the scroller follows: a stretch of rows
 * that is laid out as it comes near, a page that is drawn, a result that is opened. Not every browser does so by itself,
 * and none where rows are replaced: `.transcript` has `overflow-anchor: none`. Used by `tail-follow`.
 */
import { topRow } from "./row-position.js";

/** Its methods answer how far is scrolled, in px. */
export class ReaderPlace {
  #scroller;
  #row = null;
  #y = 0; // px on the screen
  #top = 0; // px that were scrolled then

  /** @param {Element} scroller */
  constructor(scroller) {
    this.#scroller = scroller;
  }

  /** The reader may have scrolled: make good what else has moved meanwhile, then remember the first row in view. Reads layout. */
  note() {
    this.#keep(this.#scroller.scrollTop - this.#top);
    return this.begin();
  }

  /** Remember the first row in view, wherever the reader was. Reads layout. */
  begin() {
    this.#row = topRow(this.#scroller);
    this.#y = this.#row?.getBoundingClientRect().top ?? 0;
    return (this.#top = this.#scroller.scrollTop);
  }

  /** Have that row, or the one that was drawn in its place, where it was on the screen. Writes once. */
  keep() {
    return this.#keep(0) ? this.#top : this.begin();
  }

  /** Answers whether the row is still there. @param {number} scrolled px, by the reader */
  #keep(scrolled) {
    const row = this.#row?.isConnected ? this.#row : this.#row && document.getElementById(this.#row.id);
    if (!row?.checkVisibility()) return false;
    this.#row = row;
    this.#y -= scrolled;
    const moved = row.getBoundingClientRect().top - this.#y;
    if (Math.abs(moved) >= 0.5) this.#scroller.scrollTop += moved;
    this.#top = this.#scroller.scrollTop;
    return true;
  }
}
