/** The pill over a list: how much is new while somebody reads there; a press shows it. Used by the lists that live. */
export class NewsPill {
  #element;

  /**
   * @param {HTMLElement} element a button, or a link to what is new
   * @param {() => void} pressed
   * @param {AbortSignal} signal
   */
  constructor(element, pressed, signal) {
    this.#element = element;
    element.addEventListener("click", (event) => press(event, pressed), { signal });
  }

  /** @param {number} count of what is new; 0 hides it @param {string} [words] */
  show(count, words = "") {
    this.#element.hidden = count === 0;
    const label = this.#element.querySelector("span");
    if (count && label.textContent !== words) label.textContent = words; // read out where it is said anew
  }
}

/** A link that is to open elsewhere does so. */
function press(event, pressed) {
  if (event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  pressed();
}
