/** Loads the cards of approval requests, and keeps those that were partly filled in when another was opened. */
import { drawTimes } from "./clock.js";
import { markup } from "./fetch.js";
import { render } from "./html.js";

export class RequestCards {
  #edited = new Map(); // key of a request → its edited card, which is not in the page

  /** Keep a card that leaves the page if any of its fields was edited. @param {Element | null} card */
  keep(card) {
    if (card && [...card.querySelectorAll("input, textarea, select")].some(isEdited)) this.#edited.set(card.dataset.key, card);
  }

  /** Drop the cards of requests that are no longer pending. @param {{key: string, status: string}[]} rows */
  settle(rows) {
    for (const { key, status } of rows) if (status !== "pending") this.#edited.delete(key);
  }

  /**
   * Returns the kept card of a request, or else fetches it. Throws `RequestError`.
   * @returns {Promise<Element | null>}
   */
  async load(key, address, signal) {
    const card = this.#edited.get(key);
    this.#edited.delete(key);
    if (card) return card;
    const fragment = render(await markup(`${address}?part=card`, { signal }));
    drawTimes(fragment);
    return fragment.querySelector(".question");
  }
}

const isEdited = (field) => {
  if (field.matches("select")) return field.selectedIndex !== Math.max(0, [...field.options].findIndex((option) => option.defaultSelected));
  return field.matches("[type=checkbox], [type=radio]") ? field.checked !== field.defaultChecked : field.value !== field.defaultValue;
};
