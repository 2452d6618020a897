/** Sizes of an element and of what stands directly in it. Used by `tail-follow`. */

/**
 * Call `changed` before the next frame is painted whenever one of them has another size, and once at the beginning.
 * @param {Element} element @param {() => void} changed @returns {() => void} ends it
 */
export const watchSizes = (element, changed) => {
  const sizes = new ResizeObserver(changed);
  let observed = new Set();
  const observe = () => {
    const children = new Set(element.children);
    for (const child of children) if (!observed.has(child)) sizes.observe(child, { box: "border-box" });
    for (const child of observed) if (!children.has(child)) sizes.unobserve(child);
    observed = children;
  };
  const parts = new MutationObserver(observe);
  sizes.observe(element);
  parts.observe(element, { childList: true });
  observe();
  return () => {
    sizes.disconnect();
    parts.disconnect();
  };
};
