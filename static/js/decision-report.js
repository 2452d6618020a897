/** The result of a decision, in one live region of the page, until the next result or its dismissal. Used by `decision-form`. */

/**
 * @param {string} text
 * @param {"done" | "failed"} tone
 */
export function report(text, tone) {
  const region = existingRegion() ?? newRegion();
  region.dataset.tone = tone;
  region.querySelector("span").textContent = text;
  region.hidden = false;
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
