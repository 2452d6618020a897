/** `<server-start>`: reloads the page once the server has started, to show what was requested at this address. */

const CHECK_INTERVAL_MS = 1_000;

class ServerStart extends HTMLElement {
  #stop;

  connectedCallback() {
    this.textContent = "The page opens by itself as soon as the server is ready.";
    this.#stop = new AbortController();
    this.#check();
  }

  disconnectedCallback() {
    this.#stop.abort();
  }

  async #check() {
    if (this.#stop.signal.aborted) return;
    if (await isReady(this.dataset.ready, this.#stop.signal)) location.reload();
    else setTimeout(() => this.#check(), CHECK_INTERVAL_MS);
  }
}

/** Whether the server responds that it is ready; an unreachable one is not. */
async function isReady(address, signal) {
  try {
    return (await fetch(address, { signal, cache: "no-store" })).ok;
  } catch {
    return false;
  }
}

customElements.define("server-start", ServerStart);
