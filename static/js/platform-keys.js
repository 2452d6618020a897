/** Keys as the reader's system has them: on a Mac, Command in place of Ctrl. Imported by `palette.js`, which every page loads, and where keys are named. */

export const IS_MAC = /^(mac|iphone|ipad)/i.test(navigator.userAgentData?.platform ?? navigator.platform);
export const COPY_KEYS = IS_MAC ? "⌘C" : "Ctrl+C";

/** Whether only the modifier of the system's shortcuts is held down: Ctrl+K in a Mac's text field deletes to the end of the line. @param {KeyboardEvent} event */
export const isCommand = ({ ctrlKey, metaKey, shiftKey, altKey }) => (IS_MAC ? metaKey && !ctrlKey : ctrlKey && !metaKey) && !shiftKey && !altKey;

if (IS_MAC) {
  for (const key of document.querySelectorAll("kbd")) key.textContent = key.textContent.replace(/^Ctrl ?/, "⌘");
  document.querySelector("[aria-keyshortcuts='Control+K']")?.setAttribute("aria-keyshortcuts", "Meta+K");
}
