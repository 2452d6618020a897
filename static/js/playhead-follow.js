/**
 * Render an element again whenever the playhead moves, with `at=` in its source address updated.
 * @param {HTMLElement} element
 * @param {string} name  of the data attribute with the address
 * @param {(move: {isSameMoment?: boolean}) => Promise<unknown>} render  `isSameMoment`: again, after a redaction
 * @returns {() => void} stops following
 */
export const followPlayhead = (element, name, render) => {
  const update = ({ detail: { at, wait, isSameMoment } }) => {
    element.dataset[name] = element.dataset[name].replace(/\bat=\d+/u, `at=${at}`);
    wait(render({ isSameMoment }));
  };
  document.addEventListener("playhead:moved", update);
  return () => document.removeEventListener("playhead:moved", update);
};
