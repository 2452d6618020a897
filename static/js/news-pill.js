/** The pill over a list that shows the number of new rows; pressing it shows them. */
import { setLabel } from "./label-text.js";

export class NewsPill {
  #element;

  /**
   * @param {HTMLElement} element its button
   * @param {() => void} onPress
   * @param {AbortSignal} signal
   */
  constructor(element, onPress, signal) {
    this.#element = element;
    element.addEventListener("click", onPress, { signal });
  }

  /** @param {number} count of new rows; 0 hides the pill @param {string} [text] its label */
  show(count, text = "") {
    this.#element.hidden = count === 0;
    if (count) setLabel(this.#element.querySelector("span"), text);
  }
}

/**
 * Returns the pill's label for new rows.
 * @param {number} count @param {string} singular noun @param {string} plural @param {boolean} [isCut] there may be more
 */
export const newRows = (count, singular, plural, isCut = false) => `${count}${isCut ? " or more" : ""} new ${count === 1 && !isCut ? singular : plural}`;
