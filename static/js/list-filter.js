/**
 * `<list-filter>`: the filter form beside a list. Writes the filter into the page's URL and dispatches `filter` (bubbles) when
 * it is submitted, or after a pause in typing. The listener renders the list, then calls `settle()`, or `fail(text)`, which
 * shows the failure and offers to try again.
 */
import { FailureStrip } from "./failure-strip.js";

const PAUSE_MS = 250; // from the last input to the event

/** Returns the text for a filter whose list could not be fetched. @param {import("./fetch.js").RequestError} error */
export const notAppliedText = ({ sentence }) => `Filter not applied. ${sentence} The rows are those from before.`;

class ListFilter extends HTMLElement {
  #stop;
  #timer;
  #strip;
  #retry; // called by "Try again"

  connectedCallback() {
    this.#stop = new AbortController();
    const { signal } = this.#stop;
    this.addEventListener("input", ({ target }) => target.form === this.#form && this.#schedule(), { signal });
    this.addEventListener("submit", (event) => this.#submit(event), { signal });
    this.#strip = new FailureStrip(document.querySelector("[data-unfiltered]"), () => this.#retry(), signal);
  }

  disconnectedCallback() {
    clearTimeout(this.#timer);
    this.#stop.abort();
  }

  /**
   * Show that a request failed.
   * @param {string} text  also says what is shown instead
   * @param {() => void} [retry]  default: apply the filter again
   */
  fail(text, retry = () => this.#apply()) {
    this.#retry = retry;
    this.#strip.show(text);
  }

  /** Hide the failure: everything is rendered for the current filter. */
  settle() {
    this.#strip.hide(this.querySelector("input"));
  }

  get hasFailed() { return this.#strip.isShown; }

  /** The filter's form; the list may contain others. */
  get #form() { return this.querySelector("form"); }

  #submit(event) {
    if (event.target !== this.#form) return;
    event.preventDefault();
    this.#apply();
  }

  #schedule() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#apply(), PAUSE_MS);
  }

  #apply() {
    clearTimeout(this.#timer);
    const form = this.#form;
    const query = new URLSearchParams([...new FormData(form)].filter(([, value]) => value.trim()));
    history.replaceState(null, "", `${form.getAttribute("action")}${query.size ? `?${query}` : ""}`);
    this.dispatchEvent(new CustomEvent("filter", { bubbles: true }));
  }
}

customElements.define("list-filter", ListFilter);
