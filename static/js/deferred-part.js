/**
 * `<deferred-part data-src>`: stands for a part of a page that is not ready yet. It polls `data-src` every two seconds while
 * the page is visible, and is replaced by the part as soon as the response is not empty.
 */
import { Poller } from "./poller.js";
import { RequestError, markup } from "./fetch.js";
import { render } from "./html.js";

const INTERVAL_MS = 2_000;

class DeferredPart extends HTMLElement {
  #poller;

  connectedCallback() {
    this.#poller = new Poller((signal) => this.#poll(signal), INTERVAL_MS);
  }

  disconnectedCallback() {
    this.#poller.stop();
  }

  async #poll(signal) {
    try {
      const html = await markup(this.dataset.src, { signal });
      if (html.trim()) this.replaceWith(render(html));
    } catch (error) {
      if (!(error instanceof RequestError)) throw error; // the server is unreachable: polling goes on
    }
  }
}

customElements.define("deferred-part", DeferredPart);
