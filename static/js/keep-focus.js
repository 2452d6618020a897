/** Fields drawn anew in the place of the old ones. Called where a form's choices change with what was chosen. */

/**
 * Put the new fields in the place of the old ones; who was in one stays in it, with what was typed.
 * @param {HTMLElement} place
 * @param {DocumentFragment} fresh
 */
export function keepingFocus(place, fresh) {
  const { name, value, type } = document.activeElement ?? {};
  const isWithin = place.contains(document.activeElement);
  place.replaceChildren(fresh);
  if (!isWithin || !name) return;
  const isChoice = type === "checkbox" || type === "radio";
  const same = [...place.querySelectorAll("input")].find((one) => one.name === name && one.type === type && (!isChoice || one.value === value));
  if (same && !isChoice && same.value !== value) same.value = value;
  same?.focus();
}
