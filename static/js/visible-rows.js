/** The rows of a scroller that are in view, found by halves: rows stand one below the other. Used by the lanes. */

/**
 * @param {Element} scroller @param {number} [margin] px above and below that count as in view
 * @returns {Element[]} in order
 */
export const visibleRows = (scroller, margin = 0) => {
  const { top, bottom } = scroller.getBoundingClientRect();
  const inView = ([...children], isIn) => {
    const first = half(children, (one) => one.getBoundingClientRect().bottom > top - margin);
    const end = half(children, (one) => one.getBoundingClientRect().top >= bottom + margin);
    return children.slice(first, end).filter(isIn);
  };
  const stretches = inView(scroller.querySelectorAll(":scope > .rows"), () => true);
  return stretches.flatMap((stretch) => inView(stretch.children, (row) => row.matches("[data-seq]")));
};

/** The number of the first for which `isPast`, which holds for all after it. */
const half = (items, isPast) => {
  let [low, high] = [0, items.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (isPast(items[middle])) high = middle;
    else low = middle + 1;
  }
  return low;
};
