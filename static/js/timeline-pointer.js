/** Zooms and pans a timeline by pointer: Ctrl and the wheel zoom, Shift and the wheel pan, dragging selects the range to show. */

const MIN_DRAG_PX = 6; // shorter drags count as clicks
const PAN_SHARE = 0.2; // of the range shown, per wheel event

export class TimelinePointer {
  #element;
  #scale;
  #onChange;
  #brush = null;

  /**
   * @param {HTMLElement} element  the timeline
   * @param {import("./timeline-scale.js").TimelineScale} scale
   * @param {() => void} onChange  called when another range is shown
   * @param {AbortSignal} signal
   */
  constructor(element, scale, onChange, signal) {
    this.#element = element;
    this.#scale = scale;
    this.#onChange = onChange;
    element.addEventListener("wheel", (event) => this.#handleWheel(event), { signal, passive: false });
    element.addEventListener("pointerdown", (event) => this.#startDrag(event), { signal });
  }

  get #ticks() {
    return this.#element.querySelector(".ticks")?.getBoundingClientRect();
  }

  /** Returns the pointer's position on the tracks, 0 to 1; null if it is outside. */
  #share({ clientX }) {
    const box = this.#ticks;
    return !box || clientX < box.left || clientX > box.right ? null : (clientX - box.left) / box.width;
  }

  #handleWheel(event) {
    const share = this.#share(event);
    if (share === null || !(event.ctrlKey || event.shiftKey)) return;
    event.preventDefault();
    if (event.ctrlKey) this.#scale.zoom(event.deltaY < 0 ? 1 : -1, share);
    else this.#scale.pan(Math.sign(event.deltaY || event.deltaX) * PAN_SHARE);
    this.#onChange();
  }

  #startDrag(event) {
    const share = this.#share(event);
    const scroller = event.target.closest(".waterfall-scroll");
    if (share === null || event.button || event.pointerType === "touch" || !scroller) return;
    event.preventDefault();
    const dragEnd = new AbortController();
    addEventListener("pointermove", (next) => this.#drag(scroller, event.clientX, next.clientX), { signal: dragEnd.signal });
    addEventListener("pointerup", (last) => (dragEnd.abort(), this.#endDrag(share, last)), { signal: dragEnd.signal });
    addEventListener("pointercancel", () => (dragEnd.abort(), this.#removeBrush()), { signal: dragEnd.signal });
  }

  #drag(scroller, from, to) {
    if (Math.abs(to - from) < MIN_DRAG_PX && !this.#brush) return;
    this.#brush ??= scroller.appendChild(Object.assign(document.createElement("div"), { className: "brush" }));
    this.#brush.style.insetInlineStart = `${Math.min(from, to) - scroller.getBoundingClientRect().left}px`;
    this.#brush.style.inlineSize = `${Math.abs(to - from)}px`;
    this.#brush.style.blockSize = `${scroller.scrollHeight}px`;
  }

  #endDrag(from, { clientX }) {
    if (!this.#brush) return;
    this.#removeBrush();
    const suppressClick = (event) => (event.preventDefault(), event.stopPropagation()); // the end of a drag is not a click
    addEventListener("click", suppressClick, { capture: true, once: true });
    setTimeout(() => removeEventListener("click", suppressClick, { capture: true }));
    const { left, width } = this.#ticks;
    const to = Math.max(0, Math.min(1, (clientX - left) / width));
    this.#scale.show(Math.min(from, to), Math.max(from, to));
    this.#onChange();
  }

  #removeBrush() {
    this.#brush?.remove();
    this.#brush = null;
  }
}
