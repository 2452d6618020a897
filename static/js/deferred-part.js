/**
 * `<deferred-part data-src>`: a part of a page that is not there yet. It asks every two seconds, while it is in sight, and puts
 * the part in its place once there is one.
 */
import { Poller } from "./poller.js";
import { RequestError, markup } from "./fetch.js";
import { render } from "./html.js";

const EVERY_MS = 2_000;

class DeferredPart extends HTMLElement {
  #questions;

  connectedCallback() {
    this.#questions = new Poller((signal) => this.#ask(signal), EVERY_MS);
  }

  disconnectedCallback() {
    this.#questions.stop();
  }

  async #ask(signal) {
    try {
      const html = await markup(this.dataset.src, { signal });
      if (html.trim()) this.replaceWith(render(html));
    } catch (error) {
      if (!(error instanceof RequestError)) throw error; // the server is away: it is asked again
    }
  }
}

customElements.define("deferred-part", DeferredPart);
