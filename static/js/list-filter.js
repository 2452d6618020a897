/**
 * `<list-filter>`: the form over a list. Typing asks for the list after a pause; the address holds the filter. Whoever hears
 * `filter` draws the list and tells it what came of that: `settle()`, or `fail(words)`, which says so and offers to try again.
 */
import { FailureStrip } from "./failure-strip.js";

const PAUSE_MS = 250;

/** What is told where the list did not come. @param {import("./fetch.js").RequestError} error */
export const notApplied = ({ sentence }) => `Filter not applied. ${sentence} The rows are those from before.`;

class ListFilter extends HTMLElement {
  #stop;
  #pause;
  #strip;
  #again; // what "Try again" does

  connectedCallback() {
    this.#stop = new AbortController();
    const { signal } = this.#stop;
    this.addEventListener("input", ({ target }) => target.form === this.#form && this.#wait(), { signal });
    this.addEventListener("submit", (event) => this.#submit(event), { signal });
    this.#strip = new FailureStrip(document.querySelector("[data-unfiltered]"), () => this.#again(), signal);
  }

  disconnectedCallback() {
    clearTimeout(this.#pause);
    this.#stop.abort();
  }

  /** Something did not come. @param {string} words  also what is shown instead @param {() => void} [again] unless the filter is to be sent again */
  fail(words, again = () => this.#tell()) {
    this.#again = again;
    this.#strip.show(words);
  }

  /** All is drawn as the filter says. */
  settle() {
    this.#strip.hide(this.querySelector("input"));
  }

  get hasFailed() { return this.#strip.isShown; }

  /** The filter itself: the list beside it may have forms of its own. */
  get #form() { return this.querySelector("form"); }

  #submit(event) {
    if (event.target !== this.#form) return;
    event.preventDefault();
    this.#tell();
  }

  #wait() {
    clearTimeout(this.#pause);
    this.#pause = setTimeout(() => this.#tell(), PAUSE_MS);
  }

  #tell() {
    clearTimeout(this.#pause);
    const form = this.#form;
    const query = new URLSearchParams([...new FormData(form)].filter(([, value]) => value.trim()));
    history.replaceState(null, "", `${form.getAttribute("action")}${query.size ? `?${query}` : ""}`);
    this.dispatchEvent(new CustomEvent("filter", { bubbles: true }));
  }
}

customElements.define("list-filter", ListFilter);
