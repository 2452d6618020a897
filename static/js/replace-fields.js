/** Replaces fields without losing the focus. Used by forms whose choices depend on what is selected in them. */

/**
 * Replace the fields of a container. If one of them has the focus, its successor gets the focus and what was typed.
 * @param {HTMLElement} container
 * @param {DocumentFragment} fields
 */
export function replaceFields(container, fields) {
  const { name, value, type } = document.activeElement ?? {};
  const hadFocus = container.contains(document.activeElement);
  const times = hadFocus && document.activeElement.closest("fieldset:has(utc-field)");
  if (times) return replaceAround(times, fields.querySelector("fieldset:has(utc-field)"));
  container.replaceChildren(fields);
  if (!hadFocus || !name) return;
  const isChoice = type === "checkbox" || type === "radio";
  const isSuccessor = (input) => input.name === name && input.type === type && (!isChoice || input.value === value);
  const successor = [...container.querySelectorAll("input")].find(isSuccessor);
  if (successor && !isChoice && successor.value !== value) successor.value = value;
  successor?.focus();
}

/** Replace the siblings of an element by those of its successor: a new field would lose the part of the time that has the focus. */
function replaceAround(element, successor) {
  const siblings = [...successor.parentNode.childNodes];
  const at = siblings.indexOf(successor);
  for (const node of [...element.parentNode.childNodes]) if (node !== element) node.remove();
  element.before(...siblings.slice(0, at));
  element.after(...siblings.slice(at + 1));
}
