/** Observes the sizes of an element and of its children. */

/**
 * Call `onResize` before the next paint whenever one of the sizes changes, and once at the start.
 * @param {Element} element @param {() => void} onResize @returns {() => void} stops observing
 */
export const watchSizes = (element, onResize) => {
  const resizeObserver = new ResizeObserver(onResize);
  let observed = new Set();
  const observeChildren = () => {
    const children = new Set(element.children);
    for (const child of children) if (!observed.has(child)) resizeObserver.observe(child, { box: "border-box" });
    for (const child of observed) if (!children.has(child)) resizeObserver.unobserve(child);
    observed = children;
  };
  const childObserver = new MutationObserver(observeChildren);
  resizeObserver.observe(element);
  childObserver.observe(element, { childList: true });
  observeChildren();
  return () => {
    resizeObserver.disconnect();
    childObserver.disconnect();
  };
};
