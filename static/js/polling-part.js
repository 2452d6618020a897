/**
 * `<polling-part data-src>`: a part of a page that renews itself. What the reader opened, typed or selected stays. It
 * pauses while the page is hidden, and says since when it could not be renewed.
 */
import { Poller } from "./poller.js";
import { timeOfDay } from "./clock.js";
import { RequestError, markup } from "./fetch.js";
import { redraw } from "./redraw.js";
import { openRow } from "./row-links.js";
import { serverNow } from "./server-time.js";
import { followWaiting } from "./waiting-count.js";

const EVERY_MS = 3_000;

class PollingPart extends HTMLElement {
  #renewals;
  #renewedAt = serverNow();

  connectedCallback() {
    this.addEventListener("click", openRow);
    this.#renewals = new Poller((signal) => this.#renew(signal), EVERY_MS);
  }

  disconnectedCallback() {
    this.removeEventListener("click", openRow);
    this.#renewals.stop();
  }

  async #renew(signal) {
    try {
      redraw(this, await markup(this.dataset.src, { signal }));
      this.#renewedAt = serverNow();
      this.#say("");
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      this.#say(`Last updated at ${timeOfDay(this.#renewedAt)}. ${error.sentence} Retrying.`);
    }
  }

  #say(words) {
    const strip = this.querySelector("[data-lost]");
    strip.hidden = !words;
    if (strip.querySelector("span").textContent !== words) strip.querySelector("span").textContent = words;
  }
}

customElements.define("polling-part", PollingPart);
if (!document.querySelector("conversation-list")) followWaiting(); // the list follows more, and tells of both
