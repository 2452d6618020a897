/**
 * Letters that lead into the form of an approval request: that around the focus, else of the row that has it, else of the
 * event that is picked, else the first of the page. None decides: what is focused is pressed by Enter.
 */
import { onKey } from "./keys.js";

const KEYS = {
  a: "button:is([value=approve], [value=fields]):not([hidden])",
  e: "[data-was], [name=raw]",
  r: "[name=message]",
  i: "[name=output]",
  w: "[data-always] input",
};

const around = (place) => place?.closest(".approval")?.querySelector("decision-form") ?? place?.querySelector("decision-form");
/** The form of a row's request, once its card is shown: never that of another. */
const ofRow = ({ dataset }) => document.querySelector(`.question[data-key="${CSS.escape(dataset.key)}"] decision-form`);

function current() {
  const row = document.activeElement?.closest(".ask");
  if (row) return ofRow(row);
  return around(document.activeElement?.closest(".approval")) ??
    around(document.querySelector(".transcript [aria-current=true]")) ??
    document.querySelector("decision-form");
}

for (const [key, part] of Object.entries(KEYS)) {
  onKey(key, () => {
    const target = current()?.querySelector(part);
    const folded = target?.closest("details");
    if (folded) folded.open = true;
    target?.focus();
  });
}
