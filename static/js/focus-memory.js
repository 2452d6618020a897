/** Tracks the focus across a request, so that a late response does not take the focus from somewhere else. Used by forms. */

/**
 * Remember where the focus is.
 * @param {Element} container  the focus may move anywhere within it
 * @returns {() => boolean} whether the focus is still there, or nowhere
 */
export function rememberFocus(container) {
  const focused = document.activeElement;
  return () => [focused, document.body, null].includes(document.activeElement) || container.contains(document.activeElement);
}
