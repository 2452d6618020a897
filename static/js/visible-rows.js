/** The rows of a scroller that are in view, found by halves: rows stand one below the other. Used by the lanes. */

/**
 * @param {Element} scroller @param {number} [margin] px above and below that count as in view
 * @returns {Element[]} in order
 */
export const visibleRows = (scroller, margin = 0) => {
  const { top, bottom } = scroller.getBoundingClientRect();
  const inView = (children) => {
    const first = firstPast(children, (box) => box.bottom > top - margin);
    return children.slice(first, firstPast(children, (box) => box.top >= bottom + margin));
  };
  return inView(stretchesOf(scroller)).flatMap((stretch) => inView([...stretch.children]).filter((row) => row.matches("[data-seq]")));
};

/** The stretches of rows, without a visit to all that is in them. @param {Element} scroller */
export const stretchesOf = (scroller) => [...scroller.children].filter((child) => child.classList.contains("rows"));

/**
 * The number of the first for whose box `isPast`, which holds for all after it; those without a box are passed over.
 * @param {Element[]} items @param {(box: DOMRect) => boolean} isPast
 */
export const firstPast = (items, isPast) => {
  let [low, high] = [0, items.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    let at = middle;
    let box = items[at].getBoundingClientRect();
    while (!isDrawn(box) && ++at < high) box = items[at].getBoundingClientRect();
    if (at === high || isPast(box)) high = middle;
    else low = at + 1;
  }
  while (low < items.length && !isDrawn(items[low].getBoundingClientRect())) low += 1;
  return low;
};

const isDrawn = ({ width, height }) => width > 0 || height > 0;
