/** What is shown of a conversation's graph: zoomed by keys, buttons and the wheel with Ctrl, dragged, searched by name. */
import { composes, onKey } from "./keys.js";

const STEP = 1.25; // of one zoom
const [MIN_SCALE, MAX_SCALE] = [0.25, 3]; // of its own size
const MAX_SIZE = 1.6; // to which it grows in a large room by itself (conversations/rendering/conversation_graph.py)

export class GraphView {
  #element;
  #scale = 0; // 0: as much as there is room for, by the style sheet
  #sought = "";

  /** @param {HTMLElement} element around the part that is drawn anew @param {AbortSignal} signal */
  constructor(element, signal) {
    this.#element = element;
    element.addEventListener("click", ({ target }) => this.#zoom(target.closest("[data-zoom]")?.dataset.zoom), { signal });
    element.addEventListener("wheel", (event) => this.#wheel(event), { signal, passive: false });
    element.addEventListener("pointerdown", (event) => this.#press(event), { signal });
    element.addEventListener("input", ({ target }) => target.matches("[data-find]") && this.#find(target.value), { signal });
    element.addEventListener("keydown", (event) => event.target.matches("[data-find]") && event.key === "Enter" && !composes(event) && this.#next(), { signal });
    for (const [key, name] of Object.entries({ "+": "in", "=": "in", "-": "out", 0: "all" }))
      signal.addEventListener("abort", onKey(key, () => this.#zoom(name)));
    this.settle();
  }

  get #scroller() { return this.#element.querySelector(".graph-scroll"); }
  get #svg() { return this.#element.querySelector(".graph-scroll .picture"); }

  /** Give a newer drawing the size of this one, before it takes its place. @param {DocumentFragment} fresh */
  prepare(fresh) {
    this.#size(fresh.querySelector(".graph-scroll .picture"));
  }

  settle() {
    this.#mark();
  }

  /** How large it is drawn now. */
  get #shown() {
    return this.#svg.getScreenCTM()?.a || 1;
  }

  #size(svg) {
    if (!svg) return;
    const { width, height } = svg.viewBox.baseVal;
    svg.toggleAttribute("data-zoomed", this.#scale > 0);
    svg.setAttribute("width", Math.round(width * (this.#scale || MAX_SIZE)));
    svg.setAttribute("height", Math.round(height * (this.#scale || MAX_SIZE)));
  }

  #zoom(name) {
    if (!name || !this.#svg) return;
    this.#to(name === "all" ? 0 : this.#shown * (name === "in" ? STEP : 1 / STEP));
  }

  /** Show it at another size; what is in the middle, or under the pointer, stays there. */
  #to(scale, x = this.#scroller.clientWidth / 2, y = this.#scroller.clientHeight / 2) {
    const [scroller, before] = [this.#scroller, this.#shown];
    const [left, top] = [(scroller.scrollLeft + x) / before, (scroller.scrollTop + y) / before];
    this.#scale = scale && Math.max(MIN_SCALE, Math.min(MAX_SCALE, scale));
    this.#size(this.#svg);
    scroller.scrollTo(left * this.#shown - x, top * this.#shown - y);
  }

  #wheel(event) {
    if (!event.ctrlKey || !event.target.closest(".graph-scroll")) return;
    event.preventDefault();
    const { left, top } = this.#scroller.getBoundingClientRect();
    this.#to(this.#shown * (event.deltaY < 0 ? STEP : 1 / STEP), event.clientX - left, event.clientY - top);
  }

  #press(event) {
    const scroller = event.target.closest(".graph-scroll");
    if (!scroller || event.button || event.pointerType === "touch" || event.target.closest("a")) return;
    event.preventDefault();
    scroller.focus({ preventScroll: true });
    const [x, y] = [event.clientX + scroller.scrollLeft, event.clientY + scroller.scrollTop];
    const done = new AbortController();
    scroller.toggleAttribute("data-dragged", true);
    addEventListener("pointermove", (next) => scroller.scrollTo(x - next.clientX, y - next.clientY), { signal: done.signal });
    addEventListener("pointerup", () => (done.abort(), scroller.removeAttribute("data-dragged")), { signal: done.signal });
  }

  #find(words) {
    this.#sought = words.trim().toLowerCase();
    this.#mark();
    this.#show(this.#found[0]);
  }

  get #found() {
    return [...this.#element.querySelectorAll(".voice[data-found]")];
  }

  #mark() {
    for (const node of this.#element.querySelectorAll(".voice"))
      node.toggleAttribute("data-found", this.#sought !== "" && node.dataset.name.toLowerCase().includes(this.#sought));
  }

  /** Go on to the next one found. */
  #next() {
    const found = this.#found;
    const here = found.findIndex((node) => node.hasAttribute("data-here"));
    this.#show(found[(here + 1) % found.length]);
  }

  #show(node) {
    this.#element.querySelector("[data-here]")?.removeAttribute("data-here");
    node?.toggleAttribute("data-here", true);
    node?.scrollIntoView({ block: "center", inline: "center" });
  }
}
