/** A strip that says what failed, with a button to try again. Rendered by `failure_strip` in `templates/macros/page.html`. */
export class FailureStrip {
  #element;

  /** @param {HTMLElement} element @param {() => void} retry @param {AbortSignal} signal */
  constructor(element, retry, signal) {
    this.#element = element;
    const onClick = () => {
      this.#write("Trying again…");
      retry();
    };
    element.querySelector("button").addEventListener("click", onClick, { signal });
  }

  get isShown() { return !this.#element.hidden; }

  /** @param {string} text  what failed, why, and what is shown instead */
  show(text) {
    this.#write(text);
    this.#element.hidden = false;
  }

  /** @param {HTMLElement | null} focusTarget  gets the focus if the strip has it, as it would be lost */
  hide(focusTarget) {
    if (this.#element.contains(document.activeElement)) focusTarget?.focus();
    this.#element.hidden = true;
  }

  #write(text) {
    this.#element.querySelector("span").textContent = text;
  }
}
