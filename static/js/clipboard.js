/** Copies text to the clipboard; where the browser refuses, selects the text for the reader to copy. Used by copy buttons. */

/**
 * @param {string} text
 * @param {Element} [shown] element with the same text, which is selected if the clipboard is refused
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
