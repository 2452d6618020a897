/** `<chain-check>`: verifies the chain of the audit log in steps, each one request. */
import { RequestError, markup } from "./fetch.js";
import { render } from "./html.js";

class ChainCheck extends HTMLElement {
  #abort;
  #failure = new Text(); // of the last try, while it is shown

  connectedCallback() {
    this.#abort = new AbortController();
    this.addEventListener("click", (event) => this.#click(event), { signal: this.#abort.signal });
    this.#continue();
  }

  disconnectedCallback() {
    this.#abort.abort();
  }

  get #result() { return this.querySelector("[data-checked]"); }

  #click(event) {
    const link = event.target.closest("[data-verify], [data-next]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    if (!this.#result.ariaBusy || this.#result.ariaBusy === "false") this.#verifyFrom(link.href);
  }

  /** Continue a verification that the page was opened in the middle of. */
  #continue() {
    const next = this.#result.querySelector("[data-next]");
    if (next) this.#verifyFrom(next.href);
  }

  /** Request step after step to the end of the chain. The region is busy meanwhile, so only the end is read out. */
  async #verifyFrom(start) {
    const result = this.#result;
    result.ariaBusy = "true";
    this.#failure.remove();
    try {
      for (let next = start; next; next = result.querySelector("[data-next]")?.href) {
        const url = new URL(next);
        url.searchParams.set("part", "state");
        result.replaceChildren(render(await markup(url, { signal: this.#abort.signal })));
      }
    } catch (error) {
      if (error instanceof RequestError) result.append((this.#failure = new Text(`${error.sentence} Try again.`)));
      else if (error.name !== "AbortError") throw error;
    } finally {
      result.ariaBusy = "false";
    }
  }
}

customElements.define("chain-check", ChainCheck);
