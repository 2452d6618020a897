/**
 * One line of text in a live region over the page, until the next one or its dismissal; a good one leaves by itself unless the
 * pointer or the focus is on it. A dismissal returns the focus to where it was.
 */
import { withLocalTimes } from "./clock.js";

const SHOWN_MS = 6_000;
let hideTimer = 0;
let onEnd = () => {};
let focusedBefore = null; // the element from which the focus came to the line

/**
 * @param {string} text
 * @param {"done" | "failed"} tone
 * @param {() => void} [ended] called once the text is replaced or dismissed
 */
export function report(text, tone, ended = () => {}) {
  end();
  const region = existingRegion() ?? newRegion();
  region.dataset.tone = tone;
  region.querySelector("span").textContent = withLocalTimes(text);
  region.hidden = false;
  onEnd = ended;
  if (tone === "done") hideTimer = setTimeout(() => hide(region), SHOWN_MS);
}

/** Remove the text, as its dismissal does. */
export function withdrawReport() {
  const region = existingRegion();
  if (region) region.hidden = true;
  end();
}

/** @returns {Element | null} the live region of the text */
export const reportLine = () => existingRegion()?.querySelector("span") ?? null;

function end() {
  clearTimeout(hideTimer);
  const ended = onEnd;
  onEnd = () => {};
  ended();
}

function dismiss() {
  const isFocused = existingRegion()?.contains(document.activeElement);
  withdrawReport();
  if (isFocused && focusedBefore?.isConnected) focusedBefore.focus({ preventScroll: true });
}

function hide(region) {
  if (region.matches(":hover, :focus-within")) hideTimer = setTimeout(() => hide(region), SHOWN_MS);
  else region.hidden = true;
}

const existingRegion = () => document.querySelector(".report");

function newRegion() {
  const region = Object.assign(document.createElement("div"), { className: "report" });
  const status = document.createElement("span");
  status.setAttribute("role", "status");
  status.dir = "auto";
  const close = Object.assign(document.createElement("button"), { type: "button", className: "bare", textContent: "×", title: "Dismiss" });
  close.setAttribute("aria-label", "Dismiss");
  close.addEventListener("click", dismiss);
  region.addEventListener("focusin", ({ relatedTarget }) => region.contains(relatedTarget) || (focusedBefore = relatedTarget));
  region.append(status, close);
  (document.querySelector("main") ?? document.body).append(region);
  return region;
}
