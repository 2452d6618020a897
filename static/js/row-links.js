/** Click listener for tables: a click anywhere in a row follows its first link, unless text is being selected. */
export function openRow({ target, ctrlKey, metaKey, shiftKey }) {
  const link = target.closest("tr[data-item]")?.querySelector("a");
  if (!link || target.closest("a, button, input, label, summary, details, time") || !getSelection().isCollapsed) return;
  link.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true, ctrlKey, metaKey, shiftKey }));
}
