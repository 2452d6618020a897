/**
 * The result of a decision, in one live region of the page, until the next result or its dismissal; a good one leaves by itself
 * unless the pointer or the focus is on it. Used by `decision-form`.
 */
import { withLocalTimes } from "./clock.js";

const SHOWN = 6000; // ms
let hideTimer = 0;

/**
 * @param {string} text
 * @param {"done" | "failed"} tone
 */
export function report(text, tone) {
  const region = existingRegion() ?? newRegion();
  region.dataset.tone = tone;
  region.querySelector("span").textContent = withLocalTimes(text);
  region.hidden = false;
  clearTimeout(hideTimer);
  if (tone === "done") hideTimer = setTimeout(() => hide(region), SHOWN);
}

function hide(region) {
  if (region.matches(":hover, :focus-within")) hideTimer = setTimeout(() => hide(region), SHOWN);
  else region.hidden = true;
}

/**
 * Report that a request whose form was being filled in was decided by somebody else, or can no longer be decided.
 * @param {HTMLElement} block of the request, with the decision or why there is none
 * @param {boolean} hasEdits  whether fields were edited; the edits are lost
 */
export function reportOtherDecision(block, hasEdits) {
  const undecided = block.querySelector(".verdict [data-undecided]")?.textContent.trim();
  const verdict = [...(block.querySelector(".verdict")?.children ?? [])].map((part) => part.textContent.trim()).join(" ");
  const outcome = undecided ?? `Decided elsewhere: ${verdict || "no longer waiting"}.`;
  report(`${outcome}${hasEdits ? " Your edits were not used." : ""}`, "failed");
}

const existingRegion = () => document.querySelector(".report");

function newRegion() {
  const region = Object.assign(document.createElement("div"), { className: "report" });
  const status = document.createElement("span");
  status.setAttribute("role", "status");
  status.dir = "auto";
  const close = Object.assign(document.createElement("button"), { type: "button", className: "bare", textContent: "×", title: "Dismiss" });
  close.setAttribute("aria-label", "Dismiss");
  close.addEventListener("click", () => (region.hidden = true));
  region.append(status, close);
  (document.querySelector("main") ?? document.body).append(region);
  return region;
}
