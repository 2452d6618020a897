/** The place of the verbs over a selection, which come with the first box that is ticked. Used by `conversation-list`. */
import { FailureStrip } from "./failure-strip.js";
import { RequestError, markup } from "./fetch.js";
import { render } from "./html.js";

export class BulkPlace {
  #place;
  #list;
  #strip;

  /** @param {HTMLElement} root has the list and, for whoever may control conversations, the place @param {AbortSignal} signal */
  constructor(root, signal) {
    this.#place = root.querySelector("[data-bulk]");
    if (!this.#place) return;
    this.#list = root.querySelector("[data-list]");
    this.#strip = new FailureStrip(root.querySelector("[data-bulk-failed]"), () => this.#load(), signal);
    this.#list.addEventListener("change", () => this.#load(), { signal });
  }

  /** Whether the reader may pick rows. */
  get isThere() { return Boolean(this.#place); }

  async #load() {
    const place = this.#place;
    if (place.childElementCount || place.ariaBusy) return;
    place.ariaBusy = "true";
    try {
      const [drawn] = await Promise.all([markup("/?part=bulk"), loadScript()]);
      place.replaceChildren(render(drawn));
      this.#strip.hide(place.querySelector("button"));
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      this.#strip.show(`The actions for selected conversations could not be loaded. ${error.sentence}`);
    } finally {
      place.ariaBusy = null;
    }
  }
}

/** A script that does not come is an answer that does not come. */
const loadScript = async () => {
  try {
    await import("./bulk-actions.js");
  } catch (error) {
    throw error instanceof TypeError ? new RequestError(0) : error;
  }
};
