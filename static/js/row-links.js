/** Rows of tables that lead somewhere: a click anywhere in one is a click on its first link. Text that was selected stays so. */
export function openRow({ target, ctrlKey, metaKey, shiftKey }) {
  const link = target.closest("tr[data-item]")?.querySelector("a");
  if (!link || target.closest("a, button, input, label, summary, details, time") || !getSelection().isCollapsed) return;
  link.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true, ctrlKey, metaKey, shiftKey }));
}
