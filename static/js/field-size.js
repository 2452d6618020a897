/**
 * Text areas as tall as their text, where the style sheet's `field-sizing` does nothing (Safari, older Firefox): else an
 * argument of many lines would be approved by its first two. Loaded by every page; `morph` keeps a dragged height.
 */
const FIELDS = "textarea.input";
const widths = new WeakMap(); // text area → its width in px when it was fitted

const observer = new ResizeObserver((entries) => {
  for (const { target } of entries) if (widths.get(target) !== target.offsetWidth) fit(target);
});

/** Whether a person dragged it, which sets its `height`; this module sets its `block-size`. */
export const isDragged = (area) => area.style.height !== "";

/** Make a text area as tall as its text; the style sheet may limit it. One that is not rendered is fitted once it is. A dragged height stays. */
function fit(area) {
  widths.set(area, area.offsetWidth);
  if (!area.offsetWidth || isDragged(area)) return;
  area.style.blockSize = "auto";
  const missing = area.scrollHeight - area.clientHeight;
  area.style.blockSize = missing > 0 ? `${area.offsetHeight + missing}px` : "";
}

const isCutOff = (area) => !area.style.blockSize && area.scrollHeight > area.clientHeight;

const fitAll = (root) => root?.querySelectorAll(FIELDS).forEach(fit);

const observe = (node) => {
  if (node.matches?.(FIELDS)) observer.observe(node);
  for (const area of node.querySelectorAll?.(FIELDS) ?? []) observer.observe(area);
};

if (!CSS.supports("field-sizing", "content")) {
  addEventListener("input", ({ target }) => target.matches?.(FIELDS) && fit(target));
  addEventListener("click", ({ target }) => requestAnimationFrame(() => fitAll(target.closest?.("button")?.form))); // one may undo edits
  addEventListener("composer:rested", ({ target }) => fitAll(target));
  new MutationObserver((mutations) => {
    for (const { target, type, addedNodes } of mutations)
      if (type === "childList") addedNodes.forEach(observe);
      else if (target.matches(FIELDS) && isCutOff(target)) fit(target); // a newer rendering took its height away
  }).observe(document.documentElement, { childList: true, subtree: true, attributeFilter: ["style"] });
  observe(document);
}
