/** Loads the actions for selected rows (`bulk-actions`) when the first row is selected. */
import { FailureStrip } from "./failure-strip.js";
import { RequestError, markup } from "./fetch.js";
import { render } from "./html.js";

export class LazyBulkActions {
  #container;
  #list;
  #strip;

  /**
   * @param {HTMLElement} root contains the list and, for people who may control conversations, the container of the actions
   * @param {AbortSignal} signal
   */
  constructor(root, signal) {
    this.#container = root.querySelector("[data-bulk]");
    if (!this.#container) return;
    this.#list = root.querySelector("[data-list]");
    this.#strip = new FailureStrip(root.querySelector("[data-bulk-failed]"), () => this.#load(), signal);
    this.#list.addEventListener("change", () => this.#load(), { signal });
  }

  /** Whether the person may select rows. */
  get isAllowed() { return Boolean(this.#container); }

  async #load() {
    const container = this.#container;
    if (container.childElementCount || container.ariaBusy) return;
    container.ariaBusy = "true";
    try {
      const [html] = await Promise.all([markup("/?part=bulk"), loadScript()]);
      container.replaceChildren(render(html));
      this.#strip.hide(container.querySelector("button"));
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      this.#strip.show(`The actions for selected conversations could not be loaded. ${error.sentence}`);
    } finally {
      container.ariaBusy = null;
    }
  }
}

/** Load the element's script. Throws `RequestError` if it cannot be fetched. */
const loadScript = async () => {
  try {
    await import("./bulk-actions.js");
  } catch (error) {
    throw error instanceof TypeError ? new RequestError(0) : error;
  }
};
