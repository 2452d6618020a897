/** Counts, shows and undoes edits of the arguments in the form of an approval request. Used by `decision-form`. */
import { clearProblem, editSummary, markEdits, undoEdits } from "./edited-fields.js";

export class ArgumentEdits {
  #form;

  /** @param {HTMLElement} form contains the fields and the buttons @param {AbortSignal} signal */
  constructor(form, signal) {
    this.#form = form;
    form.addEventListener("input", ({ target }) => this.#handleInput(target), { signal });
    form.addEventListener("click", ({ target }) => target.closest("[data-undo]") && this.#undo(), { signal });
  }

  /** Whether any field was edited. */
  get hasEdits() { return markEdits(this.#form).edited > 0; }

  /** Show how many fields were edited, and the button for approving with or without edits. */
  update() {
    const { edited, all } = markEdits(this.#form);
    const [plain, withEdits] = ["approve", "fields"].map((value) => this.#form.querySelector(`button[value=${value}]`));
    if (!plain || !withEdits) return;
    this.#form.toggleAttribute("data-edited", edited > 0); // the style sheet shows the other button
    plain.hidden = edited > 0;
    this.#form.querySelector("[data-undo]").hidden = !edited;
    this.#form.querySelector("[data-edit-count]").textContent = editSummary(edited, all);
  }

  #handleInput(field) {
    clearProblem(field);
    this.update();
  }

  #undo() {
    undoEdits(this.#form);
    this.update();
    this.#form.querySelector("[data-was]").focus();
  }
}
