/** Zooming (keys, buttons, Ctrl and wheel), dragging and searching a conversation's graph. */
import { composes, onKey } from "./keys.js";

const ZOOM_FACTOR = 1.25; // per step
const [MIN_SCALE, MAX_SCALE] = [0.25, 3]; // relative to the SVG's own size
const MAX_SIZE = 1.6; // scale up to which it grows to fill the space (conversations/rendering/conversation_graph.py)

export class GraphView {
  #element;
  #scale = 0; // 0: the style sheet fits it to the space
  #query = "";

  /** @param {HTMLElement} element around the part that is replaced @param {AbortSignal} signal */
  constructor(element, signal) {
    this.#element = element;
    element.addEventListener("click", ({ target }) => this.#zoom(target.closest("[data-zoom]")?.dataset.zoom), { signal });
    element.addEventListener("wheel", (event) => this.#wheel(event), { signal, passive: false });
    element.addEventListener("pointerdown", (event) => this.#startDrag(event), { signal });
    element.addEventListener("input", ({ target }) => target.matches("[data-find]") && this.#search(target.value), { signal });
    element.addEventListener("keydown", (event) => event.target.matches("[data-find]") && event.key === "Enter" && !composes(event) && this.#showNextMatch(), { signal });
    for (const [key, name] of Object.entries({ "+": "in", "=": "in", "-": "out", 0: "all" }))
      signal.addEventListener("abort", onKey(key, () => this.#zoom(name)));
    this.markMatches();
  }

  get #scroller() { return this.#element.querySelector(".graph-scroll"); }
  get #svg() { return this.#element.querySelector(".graph-scroll .picture"); }

  /** Give a newer rendering the current scale, before it replaces this one. @param {DocumentFragment} fresh */
  resize(fresh) {
    this.#setSize(fresh.querySelector(".graph-scroll .picture"));
  }

  /** Mark the participants whose names match the search. */
  markMatches() {
    for (const node of this.#element.querySelectorAll(".voice"))
      node.toggleAttribute("data-found", this.#query !== "" && node.dataset.name.toLowerCase().includes(this.#query));
  }

  /** The scale at which it is displayed, whether chosen or fitted. */
  get #displayedScale() {
    return this.#svg.getScreenCTM()?.a || 1;
  }

  #setSize(svg) {
    if (!svg) return;
    const { width, height } = svg.viewBox.baseVal;
    svg.toggleAttribute("data-zoomed", this.#scale > 0);
    svg.setAttribute("width", Math.round(width * (this.#scale || MAX_SIZE)));
    svg.setAttribute("height", Math.round(height * (this.#scale || MAX_SIZE)));
  }

  #zoom(name) {
    if (!name || !this.#svg) return;
    this.#zoomTo(name === "all" ? 0 : this.#displayedScale * (name === "in" ? ZOOM_FACTOR : 1 / ZOOM_FACTOR));
  }

  /** Set the scale; the point at `x`, `y` of the scroller (the middle, or the pointer's) stays in place. */
  #zoomTo(scale, x = this.#scroller.clientWidth / 2, y = this.#scroller.clientHeight / 2) {
    const [scroller, before] = [this.#scroller, this.#displayedScale];
    const [left, top] = [(scroller.scrollLeft + x) / before, (scroller.scrollTop + y) / before];
    this.#scale = scale && Math.max(MIN_SCALE, Math.min(MAX_SCALE, scale));
    this.#setSize(this.#svg);
    scroller.scrollTo(left * this.#displayedScale - x, top * this.#displayedScale - y);
  }

  #wheel(event) {
    if (!event.ctrlKey || !event.target.closest(".graph-scroll")) return;
    event.preventDefault();
    const { left, top } = this.#scroller.getBoundingClientRect();
    const factor = event.deltaY < 0 ? ZOOM_FACTOR : 1 / ZOOM_FACTOR;
    this.#zoomTo(this.#displayedScale * factor, event.clientX - left, event.clientY - top);
  }

  #startDrag(event) {
    const scroller = event.target.closest(".graph-scroll");
    if (!scroller || event.button || event.pointerType === "touch" || event.target.closest("a")) return;
    event.preventDefault();
    scroller.focus({ preventScroll: true });
    const [x, y] = [event.clientX + scroller.scrollLeft, event.clientY + scroller.scrollTop];
    const drag = new AbortController();
    scroller.toggleAttribute("data-dragged", true);
    addEventListener("pointermove", (move) => scroller.scrollTo(x - move.clientX, y - move.clientY), { signal: drag.signal });
    for (const end of ["pointerup", "pointercancel"])
      addEventListener(end, () => (drag.abort(), scroller.removeAttribute("data-dragged")), { signal: drag.signal });
  }

  #search(text) {
    this.#query = text.trim().toLowerCase();
    this.markMatches();
    this.#showMatch(this.#matches[0]);
  }

  get #matches() {
    return [...this.#element.querySelectorAll(".voice[data-found]")];
  }

  #showNextMatch() {
    const matches = this.#matches;
    const current = matches.findIndex((node) => node.hasAttribute("data-here"));
    this.#showMatch(matches[(current + 1) % matches.length]);
  }

  #showMatch(node) {
    this.#element.querySelector("[data-here]")?.removeAttribute("data-here");
    node?.toggleAttribute("data-here", true);
    node?.scrollIntoView({ block: "center", inline: "center" });
  }
}
