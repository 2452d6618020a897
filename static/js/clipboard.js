/** Puts text on the clipboard; where that is refused, selects it for the reader to copy. */

/**
 * @param {string} text
 * @param {Element} [shown] where the same text stands, to be selected when the clipboard is refused
 * @returns {Promise<boolean>} whether it was copied
 */
export const copy = async (text, shown) => {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    if (shown) getSelection().selectAllChildren(shown);
    return false;
  }
};
