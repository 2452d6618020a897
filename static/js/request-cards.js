/** Cards of approval requests. One that somebody had begun to fill in when another was opened comes back as it was left. */
import { drawTimes } from "./clock.js";
import { markup } from "./fetch.js";
import { render } from "./html.js";

export class RequestCards {
  #cards = new Map(); // key of a request → its card, changed and not in the page

  /** Keep a card that leaves the page, if anything in it was changed. @param {Element | null} card */
  keep(card) {
    if (card && [...card.querySelectorAll("input, textarea, select")].some(isChanged)) this.#cards.set(card.dataset.key, card);
  }

  /** Let go those that were decided meanwhile. @param {{key: string, status: string}[]} rows */
  settle(rows) {
    for (const { key, status } of rows) if (status !== "pending") this.#cards.delete(key);
  }

  /**
   * The card of a request as it was left, else as it is now; throws `RequestError`.
   * @returns {Promise<Element | null>}
   */
  async load(key, address, signal) {
    const card = this.#cards.get(key);
    this.#cards.delete(key);
    if (card) return card;
    const drawn = render(await markup(`${address}?part=card`, { signal }));
    drawTimes(drawn);
    return drawn.querySelector(".question");
  }
}

const isChanged = (field) => {
  if (field.matches("select")) return field.selectedIndex !== Math.max(0, [...field.options].findIndex((option) => option.defaultSelected));
  return field.matches("[type=checkbox], [type=radio]") ? field.checked !== field.defaultChecked : field.value !== field.defaultValue;
};
