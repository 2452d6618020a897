/**
 * Hides "Run again" of runs that were run again: the newer attempt, whose row names the older one, has a button of its own once it ends.
 * Used by `transcript-rows`.
 */
const BUTTONS = 'button[form="again"]';
const NEWER = "[data-again-of]";

/** Look after these new rows are in the page, if they matter. @param {ParentNode} rows */
export const watchSuperseded = (rows) => {
  if (rows.querySelector(`${NEWER}, ${BUTTONS}`)) queueMicrotask(hideSuperseded);
};

const hideSuperseded = () => {
  const again = new Set([...document.querySelectorAll(NEWER)].map(({ dataset }) => dataset.againOf));
  for (const button of document.querySelectorAll(BUTTONS)) button.hidden = again.has(button.value);
};
