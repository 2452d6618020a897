/** Folds a message composer to one line until somebody writes (`data-open`), so that the transcript gets the space. */

export class ComposerFold {
  #composer;
  #form;
  #signal;
  #isPointerDown = false;

  /** @param {HTMLElement} composer @param {AbortSignal} signal */
  constructor(composer, signal) {
    this.#composer = composer;
    this.#form = composer.querySelector("form");
    this.#signal = signal;
    this.#form.addEventListener("focusin", () => this.open(), { signal });
    this.#form.addEventListener("focusout", ({ relatedTarget }) => this.#form.contains(relatedTarget) || this.#fold(), { signal });
    composer.closest("details")?.querySelector("summary").addEventListener("click", () => setTimeout(() => this.#focusOpened()), { signal });
    addEventListener("pointerdown", () => (this.#isPointerDown = true), { signal, capture: true });
    for (const end of ["pointerup", "pointercancel"]) addEventListener(end, () => (this.#isPointerDown = false), { signal, capture: true });
  }

  open() {
    this.#composer.toggleAttribute("data-open", true);
  }

  /** Where "New conversation" has opened the form, what is typed goes into it: outside fields letters are shortcuts. */
  #focusOpened() {
    if (this.#composer.closest("details").open) this.#form.elements.content.focus();
  }

  /** Fold if the focus has left and nothing is written; during a click only after it, or its target would move away. */
  #fold() {
    if (this.#isPointerDown) {
      addEventListener("click", () => setTimeout(() => this.#fold()), { once: true, signal: this.#signal, capture: true });
      return;
    }
    const hasFocus = this.#form.contains(document.activeElement);
    this.#composer.toggleAttribute("data-open", hasFocus || Boolean(this.#form.elements.content.value));
  }
}
