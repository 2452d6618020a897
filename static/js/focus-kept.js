/** Where the focus was when something was asked for: what comes late does not take it from who has gone elsewhere. */

/**
 * Note where the focus is.
 * @param {Element} place  whoever is anywhere in it is still there
 * @returns {() => boolean} whether it is still there, or nowhere
 */
export function focusNow(place) {
  const from = document.activeElement;
  return () => [from, document.body, null].includes(document.activeElement) || place.contains(document.activeElement);
}
