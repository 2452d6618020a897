/**
 * Have an element show the moment that the playhead is at: `at=` in the address that it asks for is kept right.
 * @param {HTMLElement} element
 * @param {string} name of the data attribute that holds the address
 * @param {() => Promise<unknown>} draw
 * @returns {() => void} stop
 */
export const followPlayhead = (element, name, draw) => {
  const moved = ({ detail: { at, wait } }) => {
    element.dataset[name] = element.dataset[name].replace(/\bat=\d+/u, `at=${at}`);
    wait(draw());
  };
  document.addEventListener("playhead:moved", moved);
  return () => document.removeEventListener("playhead:moved", moved);
};
