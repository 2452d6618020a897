/** `<list-filter>`: the form over a list. Typing asks for the list after a pause; the address holds the filter. */
const PAUSE_MS = 250;

class ListFilter extends HTMLElement {
  #stop;
  #pause;

  connectedCallback() {
    this.#stop = new AbortController();
    const { signal } = this.#stop;
    this.addEventListener("input", ({ target }) => target.form === this.#form && this.#wait(), { signal });
    this.addEventListener("submit", (event) => this.#submit(event), { signal });
  }

  disconnectedCallback() {
    clearTimeout(this.#pause);
    this.#stop.abort();
  }

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
