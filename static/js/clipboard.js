/** Copies text to the clipboard; where the browser refuses, selects the text for the reader to copy. Used by copy buttons and the transcript's menu. */

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

/**
 * Copy text that is still being fetched. Call it while the press is handled: Safari refuses what begins after a response.
 * @param {Promise<string>} text  rejects if there is nothing to copy
 * @returns {Promise<boolean>} whether it was copied
 */
export const copyFetched = async (text) => {
  try {
    if (!globalThis.ClipboardItem) return await copy(await text); // Firefox before 127
    await navigator.clipboard.write([new ClipboardItem({ "text/plain": text.then(asBlob) })]);
    return true;
  } catch {
    return false;
  }
};

const asBlob = (text) => new Blob([text], { type: "text/plain" });
