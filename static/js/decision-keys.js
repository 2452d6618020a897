/**
 * Keys that move the focus into the form of an approval request: the request around the focus, else that of the focused
 * row, else that of the picked event, else the first of the page; without one, `a` follows the link to a request. No key
 * decides: Enter presses what has the focus. Loaded by `decision-form`.
 */
import { onKey } from "./keys.js";

const TARGETS = {
  a: "button:is([value=approve], [value=fields]):not([hidden])",
  e: "[data-was], [name=raw]",
  r: "[name=message]",
  i: "[name=output]",
  w: "[data-always] input",
};

const formOf = (element) => element?.closest(".approval")?.querySelector("decision-form") ?? element?.querySelector("decision-form");
/** Returns the form for a row's request if its card is shown, never the form of another request. */
const formOfRow = ({ dataset }) => document.querySelector(`.question[data-key="${CSS.escape(dataset.key)}"] decision-form`);

function currentForm() {
  const row = document.activeElement?.closest(".ask");
  if (row) return formOfRow(row);
  return formOf(document.activeElement?.closest(".approval")) ??
    formOf(document.querySelector(".transcript [aria-current=true]")) ??
    document.querySelector("decision-form");
}

for (const [key, selector] of Object.entries(TARGETS)) {
  onKey(key, () => {
    const form = currentForm();
    if (!form && key === "a") document.querySelector("[data-to-request]:not([hidden])")?.click();
    const target = form?.querySelector(selector);
    const details = target?.closest("details");
    if (details) details.open = true;
    target?.focus();
  });
}
