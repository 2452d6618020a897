/**
 * Shows which fields of a form differ from their initial values (`[data-was]`), and whether its JSON does. Used by forms for a
 * tool call's arguments.
 */

const isEdited = (field) => field.value !== field.dataset.was.replace(/\r\n?/gu, "\n");

/**
 * Mark the edited fields, and show the initial value of each.
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

/** Returns whether the JSON was edited. Its initial value is in `data-was-json` only after an error, when it shows what was entered. */
export function hasEditedJson(root) {
  const area = root.querySelector("[name=raw]");
  return Boolean(area) && area.value !== initialJson(area);
}

const initialJson = (area) => area.dataset.wasJson ?? area.defaultValue;

/**
 * Returns what was edited, as the form shows it.
 * @param {number} edited  fields
 * @param {number} all  fields
 * @param {boolean} isJsonEdited
 * @returns {string}
 */
export function editSummary(edited, all, isJsonEdited) {
  const fields = all ? `${all} ${all === 1 ? "field" : "fields"}` : "Arguments";
  if (isJsonEdited) return edited ? "Fields and JSON edited: undo the edits, and edit one of them." : "JSON edited; the agent is told.";
  return edited ? `${edited} of ${fields} edited; the agent is told.` : `${fields}, as sent`;
}

/**
 * Remove the error beside a field whose value is no longer the one that was refused, and with the last of them the form's.
 * @param {Element} field
 */
export function clearProblem(field) {
  if (!field.hasAttribute("aria-invalid")) return;
  field.removeAttribute("aria-invalid");
  field.closest(".field").querySelector('[data-tone="failed"]')?.remove();
  if (!field.form.querySelector("[aria-invalid]")) field.form.querySelector(".error")?.remove();
}

/** Restore the initial values. @param {ParentNode} root */
export function undoEdits(root) {
  for (const field of root.querySelectorAll("[data-was]")) {
    field.value = field.dataset.was;
    clearProblem(field);
  }
  const area = root.querySelector("[name=raw]");
  if (area) area.value = initialJson(area);
}
