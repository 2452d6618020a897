/** Text that is cut off by its box: hovering shows all of it as the title; a tap expands it where a tap does nothing else. */
const CLIPPED = ".clip, .crumb, .what, .by";
const INTERACTIVE = "a, button, label, summary, input, textarea, [data-item]"; // a tap already acts on these
const HOVER_MS = 250; // before the text is measured, so that text which streams past the pointer is not

const titled = new WeakSet(); // elements whose title was set here: it is updated, since their text may have changed

document.addEventListener("pointerover", ({ target }) => {
  const element = target.closest?.(CLIPPED);
  if (element && (titled.has(element) || !element.closest("[title]"))) setTimeout(() => updateTitle(element), HOVER_MS);
});

document.addEventListener("click", (event) => {
  const element = event.pointerType === "touch" && event.target.closest(CLIPPED);
  if (element && !element.closest(INTERACTIVE) && (isClipped(element) || "whole" in element.dataset)) element.toggleAttribute("data-whole");
});

const updateTitle = (element) => {
  titled.add(element);
  if (isClipped(element)) element.title = element.textContent.trim();
  else element.removeAttribute("title");
};

const isClipped = (element) => element.scrollWidth > element.clientWidth;
