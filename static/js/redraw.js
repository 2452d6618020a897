/** Draws a part anew where it stands (`[data-part]` within): what the reader opened, typed or selected stays. */

import { drawTimes } from "./clock.js";
import { render } from "./html.js";
import { morph } from "./morph.js";

export function redraw(element, html) {
  const part = element.querySelector("[data-part]");
  const fresh = part.cloneNode(false);
  fresh.append(render(html));
  drawTimes(fresh);
  morph(part, fresh);
}
