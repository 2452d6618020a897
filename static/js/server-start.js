/** `<server-start>`: opens the page that was asked for, at this address, once the server has started. */

const PAUSE_MS = 1_000;

class ServerStart extends HTMLElement {
  #stop;

  connectedCallback() {
    this.textContent = "The page opens by itself as soon as the server is ready.";
    this.#stop = new AbortController();
    this.#look();
  }

  disconnectedCallback() {
    this.#stop.abort();
  }

  async #look() {
    if (this.#stop.signal.aborted) return;
    if (await isReady(this.dataset.ready, this.#stop.signal)) location.reload();
    else setTimeout(() => this.#look(), PAUSE_MS);
  }
}

/** Whether the server answers that it is ready; one that does not answer is not. */
async function isReady(address, signal) {
  try {
    return (await fetch(address, { signal, cache: "no-store" })).ok;
  } catch {
    return false;
  }
}

customElements.define("server-start", ServerStart);
