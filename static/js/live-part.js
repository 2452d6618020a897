/**
 * `<live-part data-src>`: a part of a page that renews itself. What the reader opened, typed or selected stays. It
 * pauses while the page is hidden, and says since when it could not be renewed.
 */
import { Again } from "./again.js";
import { drawTimes, timeOfDay } from "./clock.js";
import { RequestError, markup } from "./fetch.js";
import { render } from "./html.js";
import { morph } from "./morph.js";

const EVERY_MS = 3_000;

class LivePart extends HTMLElement {
  #renewals;
  #renewedAt = new Date();

  connectedCallback() {
    this.querySelector("[data-renewed]").hidden = false;
    this.#renewals = new Again((signal) => this.#renew(signal), EVERY_MS);
  }

  disconnectedCallback() {
    this.#renewals.stop();
  }

  async #renew(signal) {
    try {
      this.#draw(await markup(this.dataset.src, { signal }));
      this.#say("");
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      this.#say(`Not renewed since ${timeOfDay(this.#renewedAt)}. ${error.message} Trying again.`);
    }
  }

  #draw(html) {
    const part = this.querySelector("[data-part]");
    const fresh = part.cloneNode(false);
    fresh.append(render(html));
    drawTimes(fresh);
    const opened = new Set(keyed(part).filter((one) => one.open).map((one) => one.dataset.key));
    morph(part, fresh);
    for (const one of keyed(part)) one.open = opened.has(one.dataset.key); // rows have moved under them
    this.#renewedAt = new Date();
  }

  #say(words) {
    const strip = this.querySelector("[data-lost]");
    strip.hidden = !words;
    if (strip.querySelector("span").textContent !== words) strip.querySelector("span").textContent = words;
  }
}

/** Blocks that open, by what they are of. */
const keyed = (part) => [...part.querySelectorAll("details[data-key]")];

customElements.define("live-part", LivePart);
