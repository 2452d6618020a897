/**
 * `<list-filter>`: the form over a list. Typing asks for the list after a pause; the address holds the filter. Whoever hears
 * `filter` draws the list and tells it what came of that: `settle()`, or `fail()`, which says so and offers to try again.
 */
import { FailureStrip } from "./failure-strip.js";

const PAUSE_MS = 250;
const FROM_BEFORE = { list: "The rows are those from before.", facets: "The counts beside the filters are those from before." };

class ListFilter extends HTMLElement {
  #stop;
  #pause;
  #strip;

  connectedCallback() {
    this.#stop = new AbortController();
    const { signal } = this.#stop;
    this.addEventListener("input", ({ target }) => target.form === this.#form && this.#wait(), { signal });
    this.addEventListener("submit", (event) => this.#submit(event), { signal });
    this.#strip = new FailureStrip(document.querySelector("[data-unfiltered]"), () => this.#tell(), signal);
  }

  disconnectedCallback() {
    clearTimeout(this.#pause);
    this.#stop.abort();
  }

  /** What was to be filtered is as it was. @param {import("./fetch.js").RequestError} error @param {"list" | "facets"} [part] */
  fail(error, part = "list") {
    const refusal = part === "list" ? "Filter not applied. " : "";
    this.#strip.show(`${refusal}${error.sentence} ${FROM_BEFORE[part]}`);
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
