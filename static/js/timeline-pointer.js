/** Zooming a timeline by a pointer: the wheel with Ctrl or Shift, and a drag over what is to be shown. */

const BRUSH = 6; // px of a drag that is more than a press
const PAN = 0.2; // of what is shown

export class TimelinePointer {
  #element;
  #scale;
  #changed;
  #brush = null;

  /**
   * @param {HTMLElement} element  the timeline
   * @param {import("./timeline-scale.js").TimelineScale} scale
   * @param {() => void} changed  another part of it is shown
   * @param {AbortSignal} signal
   */
  constructor(element, scale, changed, signal) {
    this.#element = element;
    this.#scale = scale;
    this.#changed = changed;
    element.addEventListener("wheel", (event) => this.#wheel(event), { signal, passive: false });
    element.addEventListener("pointerdown", (event) => this.#press(event), { signal });
  }

  get #ticks() {
    return this.#element.querySelector(".ticks")?.getBoundingClientRect();
  }

  /** Where on the tracks a pointer is, 0 to 1; null beside them. */
  #share({ clientX }) {
    const box = this.#ticks;
    return !box || clientX < box.left || clientX > box.right ? null : (clientX - box.left) / box.width;
  }

  #wheel(event) {
    const share = this.#share(event);
    if (share === null || !(event.ctrlKey || event.shiftKey)) return;
    event.preventDefault();
    if (event.ctrlKey) this.#scale.zoom(event.deltaY < 0 ? 1 : -1, share);
    else this.#scale.pan(Math.sign(event.deltaY || event.deltaX) * PAN);
    this.#changed();
  }

  #press(event) {
    const share = this.#share(event);
    const scroller = event.target.closest(".waterfall-scroll");
    if (share === null || event.button || event.pointerType === "touch" || !scroller) return;
    event.preventDefault();
    const done = new AbortController();
    addEventListener("pointermove", (next) => this.#drag(scroller, event.clientX, next.clientX), { signal: done.signal });
    addEventListener("pointerup", (last) => (done.abort(), this.#release(share, last)), { signal: done.signal });
  }

  #drag(scroller, from, to) {
    if (Math.abs(to - from) < BRUSH && !this.#brush) return;
    this.#brush ??= scroller.appendChild(Object.assign(document.createElement("div"), { className: "brush" }));
    this.#brush.style.insetInlineStart = `${Math.min(from, to) - scroller.getBoundingClientRect().left}px`;
    this.#brush.style.inlineSize = `${Math.abs(to - from)}px`;
    this.#brush.style.blockSize = `${scroller.scrollHeight}px`;
  }

  #release(from, { clientX }) {
    if (!this.#brush) return;
    this.#brush.remove();
    this.#brush = null;
    const swallow = (event) => (event.preventDefault(), event.stopPropagation()); // it was no press
    addEventListener("click", swallow, { capture: true, once: true });
    setTimeout(() => removeEventListener("click", swallow, { capture: true }));
    const { left, width } = this.#ticks;
    const to = Math.max(0, Math.min(1, (clientX - left) / width));
    this.#scale.show(Math.min(from, to), Math.max(from, to));
    this.#changed();
  }
}
