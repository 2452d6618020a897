/** Fields that begin with a value (`[data-was]`): which of them were changed, shown at each. Used by forms of arguments. */

const isEdited = (field) => field.value !== field.dataset.was.replace(/\r\n?/gu, "\n");

/**
 * Mark the fields that were changed, each with what it was.
 * @param {ParentNode} root
 * @returns {{edited: number, all: number}}
 */
export function markEdits(root) {
  const fields = [...root.querySelectorAll("[data-was]")];
  for (const field of fields) {
    field.toggleAttribute("data-edited", isEdited(field));
    field.closest(".field").querySelector("[data-was-hint]").hidden = !isEdited(field);
  }
  return { edited: fields.filter(isEdited).length, all: fields.length };
}

/** How many of the fields were changed. @param {number} edited @param {number} all @returns {string} */
export function wordsOf(edited, all) {
  const fields = `${all} ${all === 1 ? "field" : "fields"}`;
  return edited ? `${edited} of ${fields} edited; the agent is told.` : `${fields}, as sent`;
}

/** @param {ParentNode} root */
export function undoEdits(root) {
  for (const field of root.querySelectorAll("[data-was]")) {
    field.value = field.dataset.was;
    field.removeAttribute("aria-invalid");
  }
}
