/**
 * The scroll anchor of a transcript: the first row in view stays where it is on the screen when content above it changes its
 * height, such as a stretch of rows that is laid out, a page that is loaded or a result that is opened. Not every browser
 * has scroll anchoring, and none when rows are replaced, so `.transcript` has `overflow-anchor: none`.
 */
import { topRow } from "./row-position.js";

/** Its methods return the resulting `scrollTop`, in px. */
export class ScrollAnchor {
  #scroller;
  #row = null;
  #y = 0; // px of the row's top in the viewport
  #top = 0; // `scrollTop` then, in px

  /** @param {Element} scroller */
  constructor(scroller) {
    this.#scroller = scroller;
  }

  /** Update the anchor after the reader may have scrolled: undo other shifts, then anchor to the first row in view. Reads layout. */
  update() {
    this.#restore(this.#scroller.scrollTop - this.#top);
    return this.capture();
  }

  /** Anchor to the first row in view, whatever the anchor was. Reads layout. */
  capture() {
    this.#row = topRow(this.#scroller);
    this.#y = this.#row?.getBoundingClientRect().top ?? 0;
    return (this.#top = this.#scroller.scrollTop);
  }

  /** Scroll so that the anchored row, or its replacement with the same id, is where it was in the viewport. Writes once. */
  restore() {
    return this.#restore(0) ? this.#top : this.capture();
  }

  /** Returns whether the row is still there. @param {number} scrolled px, by the reader */
  #restore(scrolled) {
    const row = this.#row?.isConnected ? this.#row : this.#row && document.getElementById(this.#row.id);
    if (!row?.checkVisibility()) return false;
    this.#row = row;
    this.#y -= scrolled;
    const shift = row.getBoundingClientRect().top - this.#y;
    if (Math.abs(shift) >= 0.5) this.#scroller.scrollTop += shift;
    this.#top = this.#scroller.scrollTop;
    return true;
  }
}
