/** Draws a page of the outline over the one that is shown: its focus, scroll position and mark stay. */
import { render } from "./html.js";
import { morph } from "./morph.js";

/** @param {HTMLElement} outline contains the page, if there is one @param {string} html the newer page */
export const drawPage = (outline, html) => {
  const newer = render(html);
  const { outline: markedSeq = "" } = outline.querySelector("[aria-current]")?.dataset ?? {};
  newer.querySelector(`[data-outline="${CSS.escape(markedSeq)}"]`)?.setAttribute("aria-current", "location");
  const page = outline.querySelector("[data-outline-page]");
  if (page) morph(page, newer.querySelector("[data-outline-page]"));
  else outline.replaceChildren(newer);
};
