/** Asks for a reason before a verb is done. */

/**
 * @param {HTMLDialogElement} dialog  of `partials/reason.html`
 * @param {HTMLButtonElement} button  `data-asks` is the question; `data-needs-reason`: an empty answer will not do
 * @returns {Promise<string | null>} the reason, null when it was closed
 */
export function askReason(dialog, button) {
  const words = button.querySelector("span").textContent;
  const field = dialog.querySelector("textarea");
  dialog.querySelector("[data-verb]").textContent = words;
  dialog.querySelector("label").textContent = button.dataset.asks;
  dialog.querySelector("footer > button").textContent = words;
  dialog.querySelector("[data-close]").onclick = () => dialog.close("");
  field.required = button.hasAttribute("data-needs-reason");
  field.value = dialog.returnValue = "";
  dialog.showModal();
  field.focus();
  return new Promise((answer) => {
    dialog.addEventListener("close", () => answer(dialog.returnValue === "do" ? field.value.trim() : null), { once: true });
  });
}
