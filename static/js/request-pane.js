/** The pane beside the list of approval requests that shows the card of one request. */
import { noteFailure } from "./failure-note.js";
import { RequestError } from "./fetch.js";
import { morph } from "./morph.js";
import { RequestCards } from "./request-cards.js";

export class RequestPane {
  #element;
  #rows;
  #signal;
  #cards = new RequestCards();
  #requestedKey = ""; // of the card that was requested last

  /**
   * @param {HTMLElement} element contains the card
   * @param {import("./approval-rows.js").ApprovalRows} rows  the list, in which the row of the shown request is marked
   * @param {AbortSignal} signal
   */
  constructor(element, rows, signal) {
    [this.#element, this.#rows, this.#signal] = [element, rows, signal];
  }

  /** The key of the request that is shown; empty if there is none. */
  get key() { return this.#card?.dataset.key ?? ""; }

  /** Whether the request that is shown waits for a decision. */
  get isPending() { return this.#card?.dataset.status === "pending"; }

  get #card() { return this.#element.querySelector(".question"); }

  /** Focus the request and have its heading in sight, which was scrolled away where another request had been decided. */
  focus() {
    this.#element.querySelector(".approval")?.focus();
    this.#card?.querySelector("h2").scrollIntoView({ block: "nearest" });
  }

  /** Show a request. Returns whether it is shown: its card may not be available, or another one was requested in the meantime. */
  async show(key) {
    if (!key) return false;
    this.#requestedKey = key;
    if (key === this.key && this.isPending) return true;
    const card = await this.#load(key);
    if (!card || this.#requestedKey !== key) return false;
    this.#cards.keep(this.#card);
    this.#element.replaceChildren(card);
    this.#rows.mark(key);
    return true;
  }

  /** Apply the changed states of requests to the card that is shown and to those kept. @param {{key: string, status: string}[]} rows */
  update(rows) {
    this.#cards.settle(rows);
    if (rows.some(({ key, status }) => key === this.key && status !== this.#card.dataset.status)) this.#refreshCard();
  }

  /** Fetch the card again, and update it unless another one is shown by then. */
  async #refreshCard() {
    const { key } = this;
    const card = await this.#load(key);
    if (card && key === this.key) morph(this.#card, card);
  }

  /** Returns the card; null if it could not be loaded, which is shown in its row. */
  async #load(key) {
    const row = this.#rows.find(key);
    try {
      return await this.#cards.load(key, row?.querySelector("a").href ?? location.pathname, this.#signal);
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      if (row) noteFailure(row.querySelector("[data-said]"), error, { text: error.sentence });
      return null;
    }
  }
}
