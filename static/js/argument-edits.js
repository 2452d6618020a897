/** Counts, shows and undoes edits of the arguments in the form of an approval request. */
import { clearProblem, editSummary, hasEditedJson, markEdits, undoEdits } from "./edited-fields.js";

export class ArgumentEdits {
  #form;

  /** @param {HTMLElement} form contains the fields and the buttons @param {AbortSignal} signal */
  constructor(form, signal) {
    this.#form = form;
    form.addEventListener("input", ({ target }) => this.#handleInput(target), { signal });
    form.addEventListener("click", ({ target }) => target.closest("[data-undo]") && this.#undo(), { signal });
  }

  /** Whether any argument was edited, in a field or in the JSON. */
  get hasEdits() { return markEdits(this.#form).edited > 0 || hasEditedJson(this.#form); }

  /** Show what was edited, and only the buttons that drop no edit. */
  update() {
    const { edited, all } = markEdits(this.#form);
    const summary = this.#form.querySelector("[data-edit-count]");
    if (!summary) return;
    const isJsonEdited = hasEditedJson(this.#form);
    const hasEdits = edited > 0 || isJsonEdited;
    this.#form.toggleAttribute("data-edited", edited > 0 && !isJsonEdited); // the style sheet shows the button of edited fields
    for (const part of this.#form.querySelectorAll("button[value=approve], [data-always]")) part.hidden = hasEdits;
    this.#form.querySelector("[data-undo]").hidden = !hasEdits;
    summary.textContent = editSummary(edited, all, isJsonEdited);
  }

  #handleInput(field) {
    clearProblem(field);
    this.update();
  }

  #undo() {
    undoEdits(this.#form);
    this.update();
    this.#form.querySelector("[data-was], [name=raw]").focus();
  }
}
