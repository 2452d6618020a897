/** Patches the `[data-part]` of an element to match newer markup: what the reader opened, typed or selected stays. */

import { drawTimes } from "./clock.js";
import { render } from "./html.js";
import { morph } from "./morph.js";

export function redraw(element, html) {
  const part = element.querySelector("[data-part]");
  const newer = part.cloneNode(false);
  newer.append(render(html));
  drawTimes(newer);
  morph(part, newer);
}
