/** `<chain-check>`: verifies the chain of the audit log, piece by piece. */
import { RequestError, markup } from "./fetch.js";
import { render } from "./html.js";

class ChainCheck extends HTMLElement {
  #stop;

  connectedCallback() {
    this.#stop = new AbortController();
    this.addEventListener("click", (event) => this.#begin(event), { signal: this.#stop.signal });
    this.#goOn();
  }

  disconnectedCallback() {
    this.#stop.abort();
  }

  get #checked() { return this.querySelector("[data-checked]"); }

  #begin(event) {
    const link = event.target.closest("[data-verify], [data-next]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    if (!this.#checked.ariaBusy || this.#checked.ariaBusy === "false") this.#walk(link.href);
  }

  /** On a page that was opened in the middle of a walk. */
  #goOn() {
    const next = this.#checked.querySelector("[data-next]");
    if (next) this.#walk(next.href);
  }

  /** Piece after piece till the end; only that is read out. */
  async #walk(address) {
    const place = this.#checked;
    place.ariaBusy = "true";
    try {
      for (let next = address; next; next = place.querySelector("[data-next]")?.href) {
        const asked = new URL(next);
        asked.searchParams.set("part", "state");
        place.replaceChildren(render(await markup(asked, { signal: this.#stop.signal })));
      }
    } catch (error) {
      if (error instanceof RequestError) place.append(`${error.sentence} Try again.`);
      else if (error.name !== "AbortError") throw error;
    } finally {
      place.ariaBusy = "false";
    }
  }
}

customElements.define("chain-check", ChainCheck);
