/**
 * `<late-part data-src>`: a part of a page that is not there yet. It asks every two seconds, while it is in sight, and puts
 * the part in its place once there is one.
 */
import { RequestError, markup } from "./fetch.js";
import { render } from "./html.js";

const EVERY_MS = 2_000;

class LatePart extends HTMLElement {
  #stop;
  #timer;

  connectedCallback() {
    this.#stop = new AbortController();
    document.addEventListener("visibilitychange", () => this.#plan(0), { signal: this.#stop.signal });
    this.#plan(EVERY_MS);
  }

  disconnectedCallback() {
    clearTimeout(this.#timer);
    this.#stop.abort();
  }

  #plan(inMs) {
    clearTimeout(this.#timer);
    if (!document.hidden && !this.#stop.signal.aborted) this.#timer = setTimeout(() => this.#ask(), inMs);
  }

  async #ask() {
    try {
      const html = await markup(this.dataset.src, { signal: this.#stop.signal });
      if (html.trim()) return this.replaceWith(render(html));
    } catch (error) {
      if (error.name === "AbortError") return;
      if (!(error instanceof RequestError)) throw error;
    }
    this.#plan(EVERY_MS);
  }
}

customElements.define("late-part", LatePart);
