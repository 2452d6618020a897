/**
 * `<polling-part data-src>`: a part of a page that is fetched again every few seconds while the page is visible. What the
 * reader opened, typed or selected stays. If fetching fails, a strip shows the time of the last update.
 */
import { Poller } from "./poller.js";
import { timeOfDay } from "./clock.js";
import { RequestError, markup } from "./fetch.js";
import { redraw } from "./redraw.js";
import { openRow } from "./row-links.js";
import { serverNow } from "./server-time.js";
import { followWaiting } from "./waiting-count.js";

const INTERVAL_MS = 3_000;

class PollingPart extends HTMLElement {
  #poller;
  #updatedAt = serverNow();

  connectedCallback() {
    this.addEventListener("click", openRow);
    this.#poller = new Poller((signal) => this.#update(signal), INTERVAL_MS);
  }

  disconnectedCallback() {
    this.removeEventListener("click", openRow);
    this.#poller.stop();
  }

  async #update(signal) {
    try {
      redraw(this, await markup(this.dataset.src, { signal }));
      this.#updatedAt = serverNow();
      this.#showError("");
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      this.#showError(`Last updated at ${timeOfDay(this.#updatedAt)}. ${error.sentence} Retrying.`);
    }
  }

  #showError(message) {
    const strip = this.querySelector("[data-lost]");
    strip.hidden = !message;
    if (strip.querySelector("span").textContent !== message) strip.querySelector("span").textContent = message;
  }
}

customElements.define("polling-part", PollingPart);
if (!document.querySelector("conversation-list")) followWaiting(); // `conversation-list` updates the count from its own subscription
