/** Whether a key press is a command of the page and not writing. */

/** @param {KeyboardEvent} event */
export const isForKeys = (event) =>
  !event.defaultPrevented && !event.altKey && !event.ctrlKey && !event.metaKey &&
  !event.target.closest("input:not([type=radio], [type=checkbox]), textarea, select, dialog, [contenteditable]");
