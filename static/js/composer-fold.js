/** A composer is one line until somebody writes (`data-open`), so that the transcript has the room. */

export class ComposerFold {
  #composer;
  #form;
  #signal;
  #isPressed = false;

  /** @param {HTMLElement} composer @param {AbortSignal} signal */
  constructor(composer, signal) {
    this.#composer = composer;
    this.#form = composer.querySelector("form");
    this.#signal = signal;
    this.#form.addEventListener("focusin", () => this.open(), { signal });
    this.#form.addEventListener("focusout", ({ relatedTarget }) => this.#form.contains(relatedTarget) || this.#rest(), { signal });
    addEventListener("pointerdown", () => (this.#isPressed = true), { signal, capture: true });
    for (const end of ["pointerup", "pointercancel"]) addEventListener(end, () => (this.#isPressed = false), { signal, capture: true });
  }

  open() {
    this.#composer.toggleAttribute("data-open", true);
  }

  /** Fold when the writer has left, but never under a press: what is clicked must not move away. */
  #rest() {
    if (this.#isPressed) {
      addEventListener("click", () => setTimeout(() => this.#rest()), { once: true, signal: this.#signal, capture: true });
      return;
    }
    const isHere = this.#form.contains(document.activeElement);
    this.#composer.toggleAttribute("data-open", isHere || Boolean(this.#form.elements.content.value));
  }
}
