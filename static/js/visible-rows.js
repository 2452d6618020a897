/** Finds the rows of a scroller that are in view, by binary search, since rows are stacked vertically. */

/**
 * Returns the rows in view.
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

/** Returns the stretches of rows, without traversing their descendants. @param {Element} scroller */
export const stretchesOf = (scroller) => [...scroller.children].filter((child) => child.classList.contains("rows"));

/**
 * Returns the index of the first item whose box satisfies `isPast`, which must hold for all items after it; skips items without a box.
 * @param {Element[]} items @param {(box: DOMRect) => boolean} isPast
 */
export const firstPast = (items, isPast) => {
  let [low, high] = [0, items.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    let index = middle;
    let box = items[index].getBoundingClientRect();
    while (!isRendered(box) && ++index < high) box = items[index].getBoundingClientRect();
    if (index === high || isPast(box)) high = middle;
    else low = index + 1;
  }
  while (low < items.length && !isRendered(items[low].getBoundingClientRect())) low += 1;
  return low;
};

const isRendered = ({ width, height }) => width > 0 || height > 0;
