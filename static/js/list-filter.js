/** `<list-filter>`: the form over a list. Typing asks for the list after a pause; the address holds the filter. */
const PAUSE_MS = 250;

class ListFilter extends HTMLElement {
  #stop;
  #pause;

  connectedCallback() {
    this.#stop = new AbortController();
    const { signal } = this.#stop;
    this.addEventListener("input", () => this.#wait(), { signal });
    this.addEventListener("submit", (event) => (event.preventDefault(), this.#tell()), { signal });
  }

  disconnectedCallback() {
    clearTimeout(this.#pause);
    this.#stop.abort();
  }

  #wait() {
    clearTimeout(this.#pause);
    this.#pause = setTimeout(() => this.#tell(), PAUSE_MS);
  }

  #tell() {
    clearTimeout(this.#pause);
    const form = this.querySelector("form");
    const query = new URLSearchParams([...new FormData(form)].filter(([, value]) => value.trim()));
    history.replaceState(null, "", `${form.getAttribute("action")}${query.size ? `?${query}` : ""}`);
    this.dispatchEvent(new CustomEvent("filter", { bubbles: true }));
  }
}

customElements.define("list-filter", ListFilter);
