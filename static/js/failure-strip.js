/** A strip that says what could not be done, and a button that tries again. Drawn by `failure_strip` of `macros/page.html`. */
export class FailureStrip {
  #element;

  /** @param {HTMLElement} element @param {() => void} tryAgain @param {AbortSignal} signal */
  constructor(element, tryAgain, signal) {
    this.#element = element;
    const press = () => {
      this.#write("Trying again…");
      tryAgain();
    };
    element.querySelector("button").addEventListener("click", press, { signal });
  }

  get isShown() { return !this.#element.hidden; }

  /** @param {string} words  what could not be done, why, and what is shown instead */
  show(words) {
    this.#write(words);
    this.#element.hidden = false;
  }

  /** @param {HTMLElement | null} heir  gets the focus, where the strip has it: it would be lost */
  hide(heir) {
    if (this.#element.contains(document.activeElement)) heir?.focus();
    this.#element.hidden = true;
  }

  #write(words) {
    this.#element.querySelector("span").textContent = words;
  }
}
