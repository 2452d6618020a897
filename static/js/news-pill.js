/** The pill over a list: how much is new while somebody reads there; a press shows it. Used by the lists that live. */
export class NewsPill {
  #element;

  /**
   * @param {HTMLElement} element its button
   * @param {() => void} pressed
   * @param {AbortSignal} signal
   */
  constructor(element, pressed, signal) {
    this.#element = element;
    element.addEventListener("click", pressed, { signal });
  }

  /** @param {number} count of what is new; 0 hides it @param {string} [words] */
  show(count, words = "") {
    this.#element.hidden = count === 0;
    const label = this.#element.querySelector("span");
    if (count && label.textContent !== words) label.textContent = words; // read out where it is said anew
  }
}

/**
 * What it says of rows that are new.
 * @param {number} count @param {string} one @param {string} many @param {boolean} [isCut] there may be more
 */
export const newRows = (count, one, many, isCut = false) => `${count}${isCut ? " or more" : ""} new ${count === 1 && !isCut ? one : many}`;
