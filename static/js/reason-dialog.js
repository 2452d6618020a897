/** The dialog that asks for a reason before an action. */

/**
 * Ask for a reason.
 * @param {HTMLDialogElement} dialog  of `partials/reason.html`
 * @param {HTMLButtonElement} button  `data-asks` is the question; `data-needs-reason`: an empty reason is refused
 * @returns {Promise<string | null>} the reason; null if the dialog was closed
 */
export function askReason(dialog, button) {
  const action = button.querySelector("span").textContent;
  const field = dialog.querySelector("textarea");
  dialog.querySelector("[data-verb]").textContent = action;
  dialog.querySelector("label").textContent = button.dataset.asks;
  dialog.querySelector("footer > button").textContent = action;
  dialog.querySelector("[data-close]").onclick = () => dialog.close("");
  field.required = button.hasAttribute("data-needs-reason");
  field.value = dialog.returnValue = "";
  dialog.showModal();
  field.focus();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "do" ? field.value.trim() : null), { once: true });
  });
}
